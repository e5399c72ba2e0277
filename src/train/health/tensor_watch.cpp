#include "train/health/tensor_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "train/health/median.h"

namespace sextant {

namespace {

constexpr double kSigmas = 10;         // beyond the median
constexpr double kLeastUpdate = 1e-6;  // beside weights
constexpr double kNever = std::numeric_limits<double>::infinity();

// Of neighbouring values, as if they differed by noise alone.
double noise_between(const std::vector<double>& values) {
  std::vector<double> changes;
  for (size_t i = 1; i < values.size(); ++i) changes.push_back(std::fabs(values[i] - values[i - 1]));
  return kDeviationsPerMad * median_of(std::move(changes)) / std::sqrt(2.0);
}

enum class Scale : uint8_t { shares, logarithms };  // in which values are compared

}  // namespace

struct TensorWatch::Detector {
  EventKind kind;
  TensorStatistics::List TensorStatistics::*list;
  Scale scale;
  double least_rise, least_fall;  // from the median, in the scale; infinite: not looked for
  double above = -kNever;         // no alarm of a rise below this
  double always = kNever;         // an alarm above this, whatever was before
  bool per_rate = false;          // the number is divided by the learning rate
  const char* what;               // "{} of gradients round to zero"
};

// In the order in which kinds come first.
const std::vector<TensorWatch::Detector>& TensorWatch::detectors() {
  using S = TensorStatistics;
  static const std::vector<Detector> all{
      // An element at the end of its format is one too many; of fp8 the largest element of a tensor always is.
      {EventKind::saturation, &S::activation_overflow, Scale::shares, 1e-6, kNever, -kNever, 1e-3, false,
       "of activations reach the largest number of their format"},
      {EventKind::saturation, &S::gradient_overflow, Scale::shares, 1e-6, kNever, -kNever, 1e-3, false,
       "of activation gradients reach the largest number of their format"},
      {EventKind::saturation, &S::fp8_activation_saturation, Scale::shares, 0.01, kNever, -kNever, kNever, false,
       "of activations reach the largest number of fp8"},
      {EventKind::saturation, &S::fp8_gradient_saturation, Scale::shares, 0.01, kNever, -kNever, kNever, false,
       "of gradients reach the largest number of fp8"},
      {EventKind::underflow, &S::gradient_underflow, Scale::shares, 0.1, kNever, -kNever, 0.5, false,
       "of activation gradients round to zero"},
      {EventKind::underflow, &S::inner_gradient_underflow, Scale::shares, 0.1, kNever, -kNever, 0.5, false,
       "of the gradients inside of the layer round to zero"},
      {EventKind::underflow, &S::fp8_gradient_underflow, Scale::shares, 0.1, kNever, -kNever, kNever, false,
       "of gradients round to zero in fp8"},
      {EventKind::underflow, &S::fp8_activation_underflow, Scale::shares, 0.1, kNever, -kNever, kNever, false,
       "of activations round to zero in fp8"},
      // Twice as large, and large enough that a softmax is nearly all on one key.
      {EventKind::logit_growth, &S::attention_logit_max, Scale::logarithms, std::log(2.0), kNever, 20, kNever, false,
       "is the largest attention logit"},
      // The weight decay of a layer without gradients still moves it, by about a hundredth.
      {EventKind::update_ratio, &S::update_ratio, Scale::logarithms, std::log(10.0), std::log(20.0), -kNever, kNever,
       true, "is the norm of the update beside that of the weights"},
  };
  return all;
}

// How far beyond its limit a value is, as a factor of the limit's distance; nothing within.
std::optional<double> TensorWatch::excess(const Detector& detector, const Series& series, double value,
                                          std::string& text) const {
  bool shares = detector.scale == Scale::shares;
  auto shown = [&](double x) { return shares ? fmt::format("{:.3g} %", 100 * x) : fmt::format("{:.3g}", x); };
  if (value > detector.always) {
    text = fmt::format("{} {}", shown(value), detector.what);
    return value / detector.always;
  }
  if (series.values.size() < kLeastHistory + kLag) return std::nullopt;
  // Quickly told of nearly all: what is within all that was usual is usual.
  auto history_end = series.values.end() - kLag;
  auto [least, most] = std::minmax_element(series.values.begin(), history_end);
  if (value >= *least && value <= *most) return std::nullopt;
  auto in_scale = [&](double x) { return shares ? x : std::log(std::max(x, std::numeric_limits<double>::min())); };
  std::vector<double> history;
  for (auto at = series.values.begin(); at != history_end; ++at) history.push_back(in_scale(*at));
  double median = median_of(history), change = in_scale(value) - median;
  double limit = change > 0 ? detector.least_rise : detector.least_fall;
  if (std::fabs(change) <= limit || (change > 0 && value <= detector.above)) return std::nullopt;
  limit = std::max(limit, kSigmas * noise_between(history));
  if (std::fabs(change) <= limit) return std::nullopt;
  double before = shares ? median : std::exp(median);
  text = detector.per_rate ? fmt::format("{:.3g} times as large as before {}", value / before, detector.what)
                           : fmt::format("{} {}, {} before (median of {} measurements)", shown(value), detector.what,
                                         shown(before), history.size());
  return std::fabs(change) / limit;
}

std::vector<TensorAlarm> TensorWatch::note(int64_t step, double lr, const TensorStatistics& tensors) {
  struct Found {
    double excess = 0;
    TensorAlarm alarm;
    size_t layers = 0;
    bool seen = false, in_row = false;
  };
  std::vector<Found> found;  // by kind, in the order of the detectors
  for (const Detector& detector : detectors()) {
    if (found.empty() || found.back().alarm.kind != detector.kind)
      found.push_back({.alarm = {.kind = detector.kind, .step = step, .text = {}}});
    const TensorStatistics::List& list = tensors.*detector.list;
    if (detector.per_rate && !(lr > 0)) continue;
    for (size_t layer = 0; layer < list.size(); ++layer) {
      // A value that is not finite is a failure with events of its own.
      if (!std::isfinite(list[layer])) continue;
      double value = detector.per_rate ? list[layer] / lr : list[layer];
      Series& series = series_[{&detector, layer}];
      // At the end of a schedule updates are less than the last bit of f32 weights: that they are zero says nothing.
      if (detector.per_rate && !series.values.empty() && lr * series.values.back() < kLeastUpdate) continue;
      std::string text;
      std::optional<double> excess = this->excess(detector, series, value, text);
      series.beyond = excess ? series.beyond + 1 : 0;
      // A value beyond its limit does not enter the history of usual values.
      if (!excess) {
        series.values.push_back(value);
        if (series.values.size() > kHistory + kLag) series.values.pop_front();
        continue;
      }
      Found& of_kind = found.back();
      of_kind.seen = true;
      if (series.beyond < kInRow) continue;
      of_kind.in_row = true;
      ++of_kind.layers;
      if (*excess <= of_kind.excess) continue;
      of_kind.excess = *excess;
      of_kind.alarm.layer = static_cast<int>(layer);
      of_kind.alarm.text = fmt::format("layer {}: {}", layer, text);
    }
  }
  std::vector<TensorAlarm> alarms;
  for (Found& of_kind : found) {
    size_t& rest = rest_[of_kind.alarm.kind];
    if (of_kind.in_row && rest == 0) {
      if (of_kind.layers > 1) of_kind.alarm.text += fmt::format("; {} layers in all", of_kind.layers);
      alarms.push_back(std::move(of_kind.alarm));
      rest = kRest;
    }
    // Kinds behind this one may see its effects: they wait until it is over.
    if (of_kind.seen) {
      if (rest > 0) rest = kRest;
      break;
    }
    if (rest > 0) --rest;
  }
  return alarms;
}

}  // namespace sextant
