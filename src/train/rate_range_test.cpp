#include "train/rate_range_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace sextant {

namespace {

constexpr double kKept = 0.9;       // of the average of losses, at each step
constexpr double kDiverged = 1.5;   // times the least average
constexpr size_t kFirstSteps = 10;  // of which averages are too noisy to tell
constexpr int64_t kMostRampSteps = 1'000'000;

[[noreturn]] void refuse_ramp(std::string_view text) {
  throw UserError({.place = "--find-lr",
                   .got = fmt::format("'{}'", text),
                   .expected =
                       "LOW:HIGH or LOW:HIGH:STEPS, such as 1e-6:1 or 1e-5:0.1:200, with 0 < LOW < HIGH and 20 to "
                       "1000000 steps",
                   .hint = text.find('=') != std::string_view::npos
                               ? "put --find-lr behind key=value pairs, or write --find-lr=LOW:HIGH"
                               : ""});
}

template <class Number>
bool take_number(std::string_view& text, Number& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take_colon(std::string_view& text) {
  if (!text.starts_with(':')) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

double RateRamp::rate_of(int64_t step) const {
  double progress = static_cast<double>(step - 1) / static_cast<double>(std::max<int64_t>(1, steps - 1));
  return low * std::pow(high / low, progress);
}

RateRamp parse_rate_ramp(std::string_view text) {
  RateRamp ramp;
  if (text.empty()) return ramp;
  std::string_view rest = text;
  bool good = take_number(rest, ramp.low) && take_colon(rest) && take_number(rest, ramp.high);
  if (good && !rest.empty()) good = take_colon(rest) && take_number(rest, ramp.steps) && rest.empty();
  good = good && std::isfinite(ramp.low) && std::isfinite(ramp.high) && ramp.low > 0 && ramp.low < ramp.high;
  if (!good || ramp.steps < 20 || ramp.steps > kMostRampSteps) refuse_ramp(text);
  return ramp;
}

void RateRangeTest::note(const StepMetrics& m) {
  if (over_) return;
  if (!m.is_finite()) {
    over_ = true;
    return;
  }
  average_ = kKept * average_ + (1 - kKept) * m[number::loss];
  weight_ = kKept * weight_ + (1 - kKept);
  points_.push_back({m.step, m[number::lr], m[number::loss], average_ / weight_});
  if (points_.size() <= kFirstSteps) return;
  double least = std::ranges::min_element(points_, {}, &RatePoint::smoothed)->smoothed;
  over_ = points_.back().smoothed > kDiverged * least;
}

std::optional<SuggestedRates> suggested_rates(const std::vector<RatePoint>& points) {
  if (points.size() < kFirstSteps) return std::nullopt;
  auto lowest = std::ranges::min_element(points, {}, &RatePoint::smoothed);
  auto count = static_cast<size_t>(lowest - points.begin());
  // The slope of a straight line through neighbouring points.
  size_t reach = std::max<size_t>(2, points.size() / 20);
  std::optional<size_t> steepest;
  double least_slope = 0;
  for (size_t i = reach; i + reach <= count; ++i) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (size_t k = i - reach; k <= i + reach; ++k) {
      double at = std::log(points[k].lr);
      n += 1, x += at, y += points[k].smoothed, xx += at * at, xy += at * points[k].smoothed;
    }
    double slope = (n * xy - x * y) / (n * xx - x * x);
    if (slope < least_slope) least_slope = slope, steepest = i;
  }
  if (!steepest) return std::nullopt;
  return SuggestedRates{points[*steepest].lr, lowest->lr / 10};
}

}  // namespace sextant
