// space_copy: a value's bytes in the other space (ir/memory_space.h). The pass `offload` inserts it.
//
// No row but any state as it is: each rank copies what it holds.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef space_copy{
    .name = "space_copy",
    .contract = "y = x, in another space.",
    .operands = "x[*] -> y[*]",
    .layout_rule = LayoutRule::free,
    .cost = streaming_cost(0),
    .recompute = Recompute::never,
    .examples = {{.name = "small", .inputs = {f64({3, 5})}, .attrs = {}}},
    .between_spaces = true,
};

}  // namespace sextant::ops
