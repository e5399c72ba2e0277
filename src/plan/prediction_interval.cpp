#include "plan/prediction_interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace sextant {

namespace {

// One row far off must not stand for its trait.
constexpr double kMostUsual = 0.5;
// A trait's rows count against so many of all rows.
constexpr double kDrawnBy = 20;
// Traits overlap (a device has few kinds of software), so that the product of all would count them twice.
constexpr double kTraitPower = 0.5;

double size_of_error(const HeldOutError& error) {
  return std::min(kMostUsual, std::abs(error.log_error));
}

// The usual size of errors, by the rows of all sources but some.
class UsualErrors {
 public:
  UsualErrors(const std::vector<HeldOutError>& errors, const std::set<std::string_view>& without)
      : errors_(errors), without_(without) {
    for (const HeldOutError& error : errors_)
      if (counts(error)) mean_ += size_of_error(error), rows_ += 1;
    mean_ = rows_ > 0 ? mean_ / rows_ : kMostUsual;
  }

  double of(const RunTraits& traits) const {
    double usual = mean_;
    for (const RunTrait& trait : kRunTraits) usual *= std::pow(ratio(traits, trait), kTraitPower);
    return usual;
  }

 private:
  bool counts(const HeldOutError& error) const { return !without_.contains(error.source); }

  double ratio(const RunTraits& traits, const RunTrait& trait) const {
    double sum = 0, rows = 0;
    for (const HeldOutError& error : errors_)
      if (counts(error) && error.traits.*trait.field == traits.*trait.field) sum += size_of_error(error), rows += 1;
    return mean_ > 0 ? (sum + kDrawnBy * mean_) / ((rows + kDrawnBy) * mean_) : 1;
  }

  const std::vector<HeldOutError>& errors_;
  const std::set<std::string_view>& without_;
  double mean_ = 0, rows_ = 0;
};

std::set<std::string_view> sources_of(const std::vector<HeldOutError>& errors) {
  std::set<std::string_view> sources;
  for (const HeldOutError& error : errors) sources.insert(error.source);
  return sources;
}

// Errors over what is usual by other sources than theirs, sorted. Rows of one source have much in common: those of a
// source with many count for more, but not in proportion (as in a fit, validate/calibrate.cpp).
std::vector<ErrorScore> scores_of(const std::vector<HeldOutError>& errors, const std::set<std::string_view>& without) {
  std::vector<ErrorScore> scores;
  for (std::string_view source : sources_of(errors)) {
    if (without.contains(source)) continue;
    std::set<std::string_view> left_out = without;
    left_out.insert(source);
    UsualErrors usual(errors, left_out);
    auto rows = static_cast<double>(std::ranges::count(errors, source, &HeldOutError::source));
    for (const HeldOutError& error : errors)
      if (error.source == source)
        scores.push_back({std::abs(error.log_error) / usual.of(error.traits), 1 / std::sqrt(rows)});
  }
  std::ranges::sort(scores, {}, &ErrorScore::value);
  return scores;
}

// At most this in `share` of all cases, the next score among them.
double conformal_quantile(const std::vector<ErrorScore>& sorted, double share) {
  if (sorted.empty()) return 0;
  double all = 0, passed = 0;
  for (const ErrorScore& score : sorted) all += score.weight;
  all += all / static_cast<double>(sorted.size());
  for (const ErrorScore& score : sorted) {
    passed += score.weight;
    if (passed >= share * all) return score.value;
  }
  return sorted.back().value;
}

}  // namespace

std::string size_class(double parameters) {
  double b = parameters / 1e9;
  return b < 2 ? "below 2 B" : b < 10 ? "2-10 B" : b < 40 ? "10-40 B" : b < 150 ? "40-150 B" : "150 B and more";
}

std::string models_word(bool experts) {
  return experts ? "experts" : "dense";
}

std::string dominated_by(const SimResult& result) {
  constexpr double kNotable = 0.2;
  const RankTime& rank = result.ranks[static_cast<size_t>(result.slowest)];
  double messages = 0;
  for (const auto& [axes, seconds] : rank.exposed) messages += seconds;
  struct Part {
    double seconds;
    const char* name;
  };
  std::array parts{Part{messages, "messages"}, Part{rank.bubble, "stages"}, Part{rank.host, "host"}};
  const Part& longest = *std::ranges::max_element(parts, {}, &Part::seconds);
  return longest.seconds > kNotable * result.seconds ? longest.name : "compute";
}

double PredictionInterval::low(double predicted) const {
  return predicted * std::exp(-log_half);
}

double PredictionInterval::high(double predicted) const {
  return predicted * std::exp(log_half);
}

bool PredictionInterval::equal(double a, double b) const {
  return std::abs(std::log(a / b)) <= log_half;
}

std::string two_digits(double end) {
  double unit = end > 0 ? std::pow(10, std::floor(std::log10(end)) - 1) : 1;
  return fmt::format("{:.10g}", unit * std::round(end / unit));
}

IntervalModel::IntervalModel(std::vector<HeldOutError> errors, MemoryIntervalModel memory)
    : errors_(std::move(errors)), scores_(scores_of(errors_, {})), memory_(std::move(memory)) {}

PredictionInterval IntervalModel::interval(const RunTraits& traits, double share) const {
  std::set<std::string_view> none;
  PredictionInterval out{.share = share,
                         .log_half = conformal_quantile(scores_, share) * UsualErrors(errors_, none).of(traits),
                         .rows = errors_.size()};
  for (const HeldOutError& error : errors_) {
    out.of_device += error.traits.device == traits.device;
    out.of_software += error.traits.software == traits.software;
  }
  return out;
}

Coverage coverage_of(const std::vector<HeldOutError>& errors, double share) {
  Coverage out{.rows = errors.size()};
  std::vector<double> halves;
  for (std::string_view source : sources_of(errors)) {
    std::set<std::string_view> without{source};
    double quantile = conformal_quantile(scores_of(errors, without), share);
    UsualErrors usual(errors, without);
    for (const HeldOutError& error : errors) {
      if (error.source != source) continue;
      halves.push_back(quantile * usual.of(error.traits));
      out.inside += std::abs(error.log_error) <= halves.back();
    }
  }
  if (!halves.empty()) {
    auto middle = halves.begin() + static_cast<std::ptrdiff_t>(halves.size() / 2);
    std::ranges::nth_element(halves, middle);
    out.median_log_half = *middle;
  }
  return out;
}

std::string coverage_text(const std::vector<HeldOutError>& errors) {
  std::string out = "intervals learned from all other sources\n";
  for (double share : {0.5, 0.6, 0.7, kIntervalShare, 0.9, 0.95}) out += text_of(coverage_of(errors, share), share);
  return out;
}

IntervalModel load_interval_model() {
  return IntervalModel(load_held_out("held_out.csv"), load_memory_interval_model());
}

}  // namespace sextant
