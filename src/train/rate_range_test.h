// The learning-rate range test (Smith 2015): the rate rises exponentially from step to step, and the loss says which
// rates train and which diverge.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "train/metrics.h"

namespace sextant {

struct RateRamp {
  double low = 1e-6, high = 1;
  int64_t steps = 100;

  double rate_of(int64_t step) const;  // `step` counts from 1
};

// "1e-5:0.1" or "1e-5:0.1:200"; empty: the defaults. UserError for anything else.
RateRamp parse_rate_ramp(std::string_view text);

struct RatePoint {
  int64_t step = 0;
  double lr = 0, loss = 0;
  double smoothed = 0;  // exponential average of the losses, corrected for its start
};

class RateRangeTest {
 public:
  explicit RateRangeTest(const RateRamp& ramp) : ramp_(ramp) {}

  const RateRamp& ramp() const { return ramp_; }
  void note(const StepMetrics& metrics);
  // The loss is not finite, or far above its least: higher rates say nothing more.
  bool is_over() const { return over_; }
  const std::vector<RatePoint>& points() const { return points_; }  // finite ones

 private:
  RateRamp ramp_;
  std::vector<RatePoint> points_;
  double average_ = 0, weight_ = 0;
  bool over_ = false;
};

struct SuggestedRates {
  double steepest = 0;         // where the loss falls fastest over the logarithm of the rate
  double tenth_of_lowest = 0;  // a tenth of the rate with the least loss
};
// Nothing where the loss never falls.
std::optional<SuggestedRates> suggested_rates(const std::vector<RatePoint>& points);

}  // namespace sextant
