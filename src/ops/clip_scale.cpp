// clip_scale: the global gradient norm, and the factor that brings it under `clip`. The factor is 0 when the norm is
// not finite: the optimizer then leaves weights and moments as they are.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

// No row but the implied ones: the sum of squares must be whole before its root is taken.
const OpDef clip_scale{
    .name = "clip_scale",
    .contract = "norm = sqrt(Σ squares); scale = min(1, clip/norm), 1 when clip is 0, 0 when the norm is not finite.",
    .operands = "squares...[] -> norm[], scale[]",
    .attrs = {"clip"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[0], in[0]};
    },
    .cost = streaming_cost(1),
    .recompute = Recompute::never,
    .examples = {{.name = "three", .inputs = {f64({}), f64({}), f64({})}, .attrs = {{"clip", 0.5}}}},
};

}  // namespace sextant::ops
