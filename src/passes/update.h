// update: appends what happens once per step: the gradient norm, clipping, and AdamW on every parameter. Matrices
// decay, vectors (biases, norm weights) do not. Feeds "lr" and "step" come in, fetch "grad_norm" goes out. Gradients
// are brought into the optimizer's layout first (ZeRO shards it), weights back into the layout they are stored in.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace sextant {

struct AdamW {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  double clip = 1.0;  // largest gradient norm; 0 = off
};

// What AdamW keeps for each parameter, besides the parameter: values of the parameter's shape, called NAME.PATH.
struct OptimizerState {
  std::string_view name;
  enum class Range : uint8_t { any, not_negative } range = Range::any;

  std::string path_of(std::string_view parameter) const { return std::string(name) + "." + std::string(parameter); }
};
inline constexpr OptimizerState kAdamWStates[] = {
    {"adam_m"}, {"adam_v", OptimizerState::Range::not_negative},  // a mean of squares: the update takes its root
};

struct UpdatePlan {
  AdamW optimizer;
  int zero = 0;
  // The pipeline rank that holds a stage. A weight that is used on several of them (a tied embedding) has its gradient
  // summed over them, and counts once in the norm.
  std::function<int(int stage)> rank_of_stage = [](int) { return 0; };
};

void append_update(Graph& graph, const UpdatePlan& plan);

}  // namespace sextant
