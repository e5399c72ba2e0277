// The learning-rate range test of `train --find-lr`: a rate for each step, until the loss diverges.
#include "train/monitors/monitors.h"
#include "train/rank_services.h"
#include "train/rate_range_test.h"

namespace sextant {

namespace {

class RateRange final : public Monitor {
 public:
  RateRange(const RateRamp& ramp, RankServices& rank) : test_(ramp), rank_(rank) {}

  // The config of a range test has a constant rate.
  void adjust(int64_t step, StepPolicy& policy) const override {
    policy.rate_factor = test_.ramp().rate_of(step) / rank_.run.optimizer.lr;
  }

  // A loss that diverges is what a range test looks for.
  RunActions after(const StepMetrics& metrics) override {
    test_.note(metrics);
    if (test_.points().size() > rank_.result.rates.size()) rank_.result.rates.push_back(test_.points().back());
    return test_.is_over() ? RunActions{Stop{ExitCode::finished}} : RunActions{};
  }

 private:
  RateRangeTest test_;
  RankServices& rank_;
};

}  // namespace

std::unique_ptr<Monitor> make_rate_range_monitor(RankServices& rank) {
  const std::optional<RateRamp>& ramp = rank.parts.view.ramp;
  return ramp ? std::make_unique<RateRange>(*ramp, rank) : nullptr;
}

}  // namespace sextant
