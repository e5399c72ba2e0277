// take_position: the row at one position of each sequence, so that generation computes logits only where it needs them.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

// No gradient: generation only. No row along s: one rank alone would hold the position.
const OpDef take_position{
    .name = "take_position",
    .contract = "y[b,0,:] = x[b,at,:].",
    .operands = "x[b s h], at[] -> y[b o h]",
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[0].dtype, {in[0].shape[0], 1, in[0].shape[2]}}};
    },
    .rows = {"b", "h"},
    .cost = [](const Attrs&, auto, auto out) { return Cost{.read = out[0].bytes(), .written = out[0].bytes()}; },
    .examples = {{.name = "small", .inputs = {f64({2, 4, 6}), i32({})}, .integers_below = 4}},
};

}  // namespace sextant::ops
