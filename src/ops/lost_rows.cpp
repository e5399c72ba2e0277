// join_lost and clip_lost: rows that found no place on their way to experts (dispatch.cpp) travel with the gradient
// norm, in its own message. Where some of a step are left after all rounds that the program has, the scale is 0, and
// the update leaves everything as it is, as for a norm that is not finite (clip_scale.cpp): the step has to be repeated
// with more rounds.
//
// No row along m: counts are few, and wanted whole by every rank.
// clip_lost: No row but the implied ones: the norm and the counts must be whole before they are read.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef join_lost{
    .name = "join_lost",
    .contract = "sums[0] = total; sums[1 + i] = Σ lost[i].",
    .operands = "total[], lost...[m] -> sums[n]",
    .attrs = {"counts"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      return {{in[0].dtype, {1 + attrs.integer("counts")}}};
    },
    .rows = {"total:P lost:P -> sums:P"},
    .cost = streaming_cost(1),
    .recompute = Recompute::never,
    .missing_inputs = MissingInputs::left_out,
    .examples = {{.name = "two_layers", .inputs = {f64({}), f64({3}), f64({3})}, .attrs = {{"counts", 3}}}},
};

const OpDef clip_lost{
    .name = "clip_lost",
    .contract =
        "norm and scale as of clip_scale with squares = sums[0], but scale = 0 where sums[rounds] > 0; lost = sums[1]; "
        "needed = 1 + the last i > 0 with sums[i] > 0: the rounds that would have served all, above `rounds` where "
        "these have not.",
    .operands = "sums[n] -> norm[], scale[], lost[], needed[]",
    .attrs = {"clip", "rounds"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      TensorType number{in[0].dtype, {}};
      return {number, number, number, number};
    },
    .cost = streaming_cost(1),
    .recompute = Recompute::never,
    .examples = {{.name = "one_round", .inputs = {f64({4})}, .attrs = {{"clip", 0.5}, {"rounds", 1}}},
                 {.name = "all_rounds", .inputs = {f64({4})}, .attrs = {{"clip", 0.5}, {"rounds", 4}}}},
};

}  // namespace sextant::ops
