// Weights of one layer that a drill multiplies before every step, so that its gradients underflow or its attention
// logits grow (fault_kinds.def): elements are scaled where they lie, whatever the mesh.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/executor.h"

namespace sextant {

// Whether this rank computes any of the layer.
bool holds_layer(const Program& program, int64_t layer);

// The matrix of the last linear of a layer, through which it writes to the next. None where this rank has no such
// layer, or the layer no such linear.
std::vector<ValueId> output_weights(const Program& program, int64_t layer);

// Of the nearest op before attention that has weights: those that make its queries and keys, or normalize them.
std::vector<ValueId> logit_weights(const Program& program, int64_t layer);

// Whether they are f32, or f16 with their f32 beside them: a bf16 has its low bits in another arrangement.
bool can_scale(const Program& program, const std::vector<ValueId>& weights);

void scale_weights(Bound& bound, const std::vector<ValueId>& weights, float factor);

}  // namespace sextant
