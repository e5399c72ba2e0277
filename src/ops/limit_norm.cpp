// limit_norm: leaves out the update of a step whose gradient norm is above a limit that the host gives for each step
// (train.spike.action = "skip"). scale = 0 means skip, as clip_scale says it of a norm that is not finite.
//
// No row but the implied ones: all three are numbers that every rank has.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef limit_norm{
    .name = "limit_norm",
    .contract = "kept = scale where norm ≤ limit, else 0.",
    .operands = "scale[], norm[], limit[] -> kept[]",
    .shape = [](const Attrs&, auto in) -> TensorTypes { return {in[0]}; },
    .cost = streaming_cost(1),
    .recompute = Recompute::never,
    .examples = {{.name = "numbers", .inputs = {f64({}), f64({}), f64({})}}},
};

}  // namespace sextant::ops
