// drop_slots: experts take a limited number of slots, and the others are dropped (Switch and GShard; Megatron's
// expert capacity). What an expert takes is counted in each sequence by itself, so that it does not depend on which
// ranks have the sequences: a mesh drops what one rank does.
//
// A dropped slot has weight 0 and expert -1. Where tokens stay where they are, experts may as well compute it; where
// they are sent, it has no row.
//
// No row along s: an expert's slots are counted over whole sequences.
// No row along k: slots are split with their tokens.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef drop_slots{
    .name = "drop_slots",
    .contract =
        "Of each sequence, an expert keeps the first `capacity` of its slots in the order of tokens, or with by_weight "
        "those with the largest weights, the first among equal ones. kept_weights and kept_experts are weights and "
        "experts of these, 0 and -1 of the others, which dropped counts.",
    .operands = "weights[b s k], experts[b s k] -> kept_weights[b s k], kept_experts[b s k], dropped[]",
    .attrs = {"capacity", "experts", "by_weight"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[0], in[1], {in[0].dtype, {}}};
    },
    .rows = {"weights:S(b) experts:S(b) -> kept_weights:S(b) kept_experts:S(b) dropped:P"},
    .backward =
        [](BackwardScope& s) {
          s.emit({drop_slots_backward, {s.output_gradient(0), s.output(1)}, {0}});
        },
    .cost = streaming_cost(8),
    .recompute = Recompute::never,
    .examples = {{.name = "by_position",
                  .inputs = {f64({4, 6, 2}), i32({4, 6, 2})},
                  .attrs = {{"capacity", 2}, {"experts", 4}},
                  .integers_below = 4},
                 {.name = "by_weight",
                  .inputs = {f64({4, 6, 2}), i32({4, 6, 2})},
                  .attrs = {{"capacity", 3}, {"experts", 3}, {"by_weight", 1}},
                  .integers_below = 3}},
};

const OpDef drop_slots_backward{
    .name = "drop_slots_backward",
    .contract = "dweights of a slot = dy where it was kept, else 0.",
    .operands = "dy[b s k], kept_experts[b s k] -> dweights[b s k]",
    .shape = [](const Attrs&, auto in) -> TensorTypes { return {in[0]}; },
    .rows = {"b", "s"},
    .cost = streaming_cost(1),
    .examples = {{.name = "kept", .inputs = {f64({4, 6, 2}), i32({4, 6, 2})}, .integers_below = 4}},
};

}  // namespace sextant::ops
