#include "train/health/spike_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "train/health/median.h"

namespace sextant {

namespace {

// A loss that hardly varies must not make a spike of its next movement.
constexpr double kLeastLossRise = 0.1, kLeastNormRise = 1.0;  // of the median

double spike_limit(const std::vector<double>& values, double median, double threshold, double least_rise) {
  std::vector<double> deviations;
  for (double value : values) deviations.push_back(std::fabs(value - median));
  return median + std::max(threshold * kDeviationsPerMad * median_of(deviations), least_rise * std::fabs(median));
}

}  // namespace

void SpikeWatch::restore(SpikeState state) {
  state_ = std::move(state);
  last_spike_ = -1;
}

std::optional<SpikeWatch::Limits> SpikeWatch::limits_of(int64_t step) const {
  auto end = std::ranges::find_if(
      state_.recent, [&](const SpikeState::RecentStep& recent) { return recent.step >= step - kStepsUnderWay; });
  int64_t known = end - state_.recent.begin();
  if (known < settings_.window) return std::nullopt;
  std::vector<double> losses, norms;
  for (auto at = end - settings_.window; at != end; ++at) {
    losses.push_back(at->loss);
    norms.push_back(at->grad_norm);
  }
  double loss = median_of(losses), norm = median_of(norms);
  return Limits{.loss = spike_limit(losses, loss, settings_.threshold, kLeastLossRise),
                .loss_median = loss,
                .grad_norm = spike_limit(norms, norm, settings_.threshold, kLeastNormRise),
                .grad_norm_median = norm};
}

int64_t SpikeWatch::skips_in_row_before(int64_t step) const {
  int64_t row = 0;
  for (auto at = state_.recent.rbegin(); at != state_.recent.rend(); ++at) {
    if (at->step >= step - kStepsUnderWay) continue;
    if (!at->skipped) break;
    ++row;
  }
  return row;
}

StepPolicy SpikeWatch::policy_of(int64_t step) const {
  StepPolicy policy;
  if (settings_.action == SpikeAction::lower_rate && step >= state_.lowered_from && step <= state_.lowered_through)
    policy.rate_factor = settings_.rate_factor;
  if (settings_.action != SpikeAction::skip || skips_in_row_before(step) >= settings_.most_skips) return policy;
  if (std::optional<Limits> limits = limits_of(step)) policy.norm_limit = static_cast<float>(limits->grad_norm);
  return policy;
}

std::optional<Spike> SpikeWatch::note(const StepMetrics& m) {
  std::optional<Limits> limits = limits_of(m.step);
  const double loss = m[number::loss], grad_norm = m[number::grad_norm];
  std::string text;
  auto compare = [&](std::string_view name, double value, double limit, double median) {
    if (value > limit)
      text += fmt::format("{}{} {:.4g} is above {:.4g} (median {:.4g} of {} steps)", text.empty() ? "" : ", ", name,
                          value, limit, median, settings_.window);
  };
  if (!m.is_finite()) {
    text = fmt::format("loss {:.4g}, gradient norm {:.4g}: not finite", std::fabs(loss), std::fabs(grad_norm));
  } else {
    if (limits) {
      compare("loss", loss, limits->loss, limits->loss_median);
      compare("gradient norm", grad_norm, limits->grad_norm, limits->grad_norm_median);
    }
    state_.recent.push_back({m.step, loss, grad_norm, m.is_update_skipped()});
    int64_t spare = std::ssize(state_.recent) - (settings_.window + kStepsUnderWay + 1);
    if (spare > 0) state_.recent.erase(state_.recent.begin(), state_.recent.begin() + spare);
  }
  if (text.empty()) return std::nullopt;
  if (settings_.action == SpikeAction::lower_rate) {
    // Extended by spikes that come while it is lowered.
    int64_t first_lowered = m.step + kStepsUnderWay + 1;
    if (state_.lowered_through < m.step) state_.lowered_from = first_lowered;
    state_.lowered_through = first_lowered + settings_.rate_steps - 1;
  }
  bool first = std::exchange(last_spike_, m.step) != m.step - 1;
  return Spike{m.step, first, std::move(text)};
}

}  // namespace sextant
