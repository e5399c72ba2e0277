// add_squares: the sum of the parts of the gradient norm's square that a rank has.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef add_squares{
    .name = "add_squares",
    .contract = "total = Σ squares.",
    .operands = "squares...[] -> total[]",
    .shape = [](const Attrs&, auto in) -> TensorTypes { return {in[0]}; },
    .rows = {"squares:P -> total:P"},
    .cost = streaming_cost(1),
    .recompute = Recompute::never,
    .missing_inputs = MissingInputs::left_out,
    .examples = {{.name = "three", .inputs = {f64({}), f64({}), f64({})}}},
};

}  // namespace sextant::ops
