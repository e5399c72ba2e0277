// Statistics of each layer in a measuring step (log.tensor_stats_every), joined over parts, microbatches and ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/host_group.h"
#include "exec/executor.h"
#include "passes/measure_tensors.h"

namespace sextant {

// A list for each number, with an element for each layer: NaN where the layer has none. Empty where no layer has.
struct TensorStatistics {
  using List = std::vector<double>;
  List activation_rms, activation_max, activation_underflow, activation_overflow;
  List activation_gradient_rms, activation_gradient_max, gradient_underflow, gradient_overflow;
  List inner_gradient_underflow;
  List fp8_activation_underflow, fp8_activation_saturation, fp8_gradient_underflow, fp8_gradient_saturation;
  List attention_logit_max;
  List gradient_rms, gradient_max, weight_rms, weight_max, update_ratio;
};

// Parts of the statistics that one rank has read after a step.
struct TensorParts {
  std::vector<double> sums;     // four for each tensor of each layer
  std::vector<double> largest;  // one for each
};

// The measured values of one rank's Program.
class TensorReader {
 public:
  // `programs`: of all pipeline ranks, so that all ranks have a place for each layer.
  TensorReader(const std::vector<Program>& programs, const Bound& bound);

  // Of the step that has just run, while nothing else has.
  void read(const Bound& bound, TensorParts& parts) const;
  // Over all ranks, the same on each. `loss_scale`: by which gradients are multiplied.
  TensorStatistics joined(TensorParts parts, HostGroup& group, double loss_scale) const;

 private:
  static constexpr size_t kTensors = 8, kSums = 4;
  size_t place(const Measurement& m) const {
    return static_cast<size_t>(m.measured.layer) * kTensors + static_cast<size_t>(m.measured.tensor);
  }

  struct Read {
    Measurement of;
    bool counted;
  };
  std::vector<Read> values_;
  size_t layers_ = 0;
};

}  // namespace sextant
