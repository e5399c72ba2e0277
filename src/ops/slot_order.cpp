// slot_order: the slots of experts (expert_linear.cpp) in the order of their experts. The linears of experts, and what
// stands between them, may have their slots in that order: rows of one expert then lie side by side, and kernels read
// them as blocks. passes/sort_slots.h puts it there, on a rank's own slots.
//
// No row but the replicated one: the order is of all slots that a rank has, and no part of the order of more.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef slot_order{
    .name = "slot_order",
    .contract =
        "order = the slots, those of expert 0 first, each expert's as they were; then the place of each slot there. "
        "offsets = where each expert's begin, and where the last one's end.",
    .operands = "experts[b s k] -> order[b s p], offsets[m]",
    .attrs = {"experts"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      const GlobalShape& slots = in[0].shape;
      return {{DType::i32, {slots[0], slots[1], 2 * slots[2]}}, {DType::i32, {attrs.integer("experts") + 1}}};
    },
    .cost = streaming_cost(4),
    .recompute = Recompute::never,
    .examples =
        {{.name = "two_of_four", .inputs = {i32({2, 4, 2})}, .attrs = {{"experts", 4}}, .integers_below = 4},
         {.name = "unused_experts", .inputs = {i32({3, 5, 1})}, .attrs = {{"experts", 7}}, .integers_below = 3}},
};

}  // namespace sextant::ops
