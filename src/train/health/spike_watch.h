// SpikeWatch: tells a step whose loss or gradient norm is far above the run's own recent ones, and what train.spike
// says is to follow from it.
//
// A value is compared with the median and the median absolute deviation of a window of steps before it, so that a few
// outliers in the window move nothing. Everything follows from numbers that are the same on every rank. The numbers of
// a step count from the second step after it on, whether a device lets the host run ahead of it or not: the decisions
// are the same on every device and after a resume, where the window comes from the checkpoint. Between meshes a value
// differs by rounding; the limits lie so far out in the tail that a value as near to its limit as that is not expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "train/metrics.h"
#include "train/step_policy.h"

namespace sextant {

// State of SpikeWatch that a checkpoint stores.
struct SpikeState {
  struct RecentStep {
    int64_t step = 0;
    double loss = 0, grad_norm = 0;  // finite
    bool skipped = false;            // its update was left out for its norm
    bool operator==(const RecentStep&) const = default;
  };
  std::vector<RecentStep> recent;                 // in order
  int64_t lowered_from = 0, lowered_through = 0;  // steps at a lower rate; none where the second is smaller
  int64_t rewinds = 0;
  bool operator==(const SpikeState&) const = default;
};

struct Spike {
  int64_t step = 0;
  bool first = true;  // the step before was none
  std::string text;   // "loss 9.31 is above 3.02 (median 2.71 of 100 steps)"
};

class SpikeWatch {
 public:
  // Steps that may be under way when the next is issued, on any device (Executor::steps_ahead).
  static constexpr int64_t kStepsUnderWay = 1;

  explicit SpikeWatch(const SpikeSection& settings) : settings_(settings) {}

  StepPolicy policy_of(int64_t step) const;  // before the step is issued
  // After it, each in turn. A step that is not finite is a spike too.
  std::optional<Spike> note(const StepMetrics& metrics);

  const SpikeState& state() const { return state_; }
  void restore(SpikeState state);
  void count_rewind() { ++state_.rewinds; }
  // Action after a spike: that of the settings, or none where no rewinds are left.
  SpikeAction answer() const {
    return settings_.action == SpikeAction::rewind && !may_rewind() ? SpikeAction::none : settings_.action;
  }
  bool may_rewind() const { return settings_.action == SpikeAction::rewind && state_.rewinds < settings_.most_rewinds; }

 private:
  struct Limits {
    double loss, loss_median, grad_norm, grad_norm_median;
  };
  std::optional<Limits> limits_of(int64_t step) const;  // nothing before the window is full
  int64_t skips_in_row_before(int64_t step) const;

  const SpikeSection& settings_;
  SpikeState state_;
  int64_t last_spike_ = -1;
};

}  // namespace sextant
