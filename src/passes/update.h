// update: appends what happens once per step: the gradient norm, clipping, and the optimizer's step on every parameter.
// Parameters that are not trained follow their tallies. Feeds "lr" and "step" come in, with Optimizer::norm_limit
// also "norm_limit"; fetch "grad_norm" goes out,
// and the statistics of experts' loads (ops/load_statistics.h). With `measures` also those of weights, gradients and
// updates (passes/measure_tensors.h).
// Gradients are brought into the optimizer's layout first (ZeRO shards it), weights back into the layout they are
// stored in.
#pragma once

#include <functional>
#include <optional>

#include "ir/graph.h"
#include "ir/plan.h"
#include "optim/loss_scaling.h"
#include "optim/optimizer.h"
#include "passes/measure_tensors.h"

namespace sextant {

struct UpdatePlan {
  Optimizer optimizer;
  int zero = 0;
  // The pipeline rank that holds a stage. A weight that is used on several of them (a tied embedding) has its gradient
  // summed over them, and counts once in the norm.
  std::function<int(int stage)> rank_of_stage = [](int) { return 0; };
  TensorMeasures measures = {};
  SmallGradients small_gradients = {};           // what measure_tensors has made of them
  Offload offload = {};                          // which of what is kept for a weight is kept on the host
  bool exact_sums = false;                       // gradients come as exact sums (ops/exact_sum.cpp)
  std::optional<LossScaling> loss_scaling = {};  // where gradients are those of scaled losses (passes/scale_losses.h)
};

void append_update(Graph& graph, const UpdatePlan& plan);

}  // namespace sextant
