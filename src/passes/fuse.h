// fuse: replaces neighbouring ops by one that does the work of both, where the target's list allows it: values that
// only pass from one to the other then never cross memory, and what both read crosses once. Runs on a rank's Program,
// after layouts and gradients are settled, so nothing before it has to know of fused ops.
//   add_norm       add, then rms_norm or layer_norm of the sum
//   norm_gradient  rms_norm_backward or layer_norm_backward, then add of the gradient that came another way
//   gelu           linear, then gelu
//   gelu_gradient  linear_input_gradient, then gelu_backward
//   gradients      linear_weight_gradient and linear_bias_gradient of one dy, each added onto its sum
//   amax           norms, SwiGLU, GELU, RoPE and their backward, then absmax of what they write; after add_norm and
//                  norm_gradient
//   slot_order     slots in the order of their experts, between the linears of experts (passes/sort_slots.h)
#pragma once

#include <span>
#include <string_view>

#include "ir/plan.h"
#include "ir/program.h"

namespace sextant {

void fuse(Program& program, const Target& target);

// The names that Target::fusions may hold.
std::span<const std::string_view> fusion_names();

}  // namespace sextant
