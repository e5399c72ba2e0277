// update: appends what happens once per step: the gradient norm, clipping, and AdamW on every parameter. Matrices decay,
// vectors (biases, norm weights) do not. Feeds "lr" and "step" come in, fetch "grad_norm" goes out.
#pragma once

#include "ir/graph.h"

namespace sextant {

struct AdamW {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  double clip = 1.0;  // largest gradient norm; 0 = off
};

void append_update(Graph& graph, const AdamW& optimizer);

}  // namespace sextant
