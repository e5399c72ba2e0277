// balance_bias: one step of a bias by which experts are chosen (DeepSeek-V3's loss-free balancing), in place. It
// follows the load of the whole step and has no gradient. scale = 0 means skip, as for the optimizers' ops: a step
// whose gradient is not finite changes nothing. Least and most are for metrics.
//
// No row but the implied ones: the mean is one of all experts, and the bias is whole on every rank.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef balance_bias{
    .name = "balance_bias",
    .contract =
        "b_e += speed·sign(mean(counts) − counts_e); sign(0) = 0; nothing where scale = 0. least and "
        "most are those of b_next.",
    .operands = "b[e], counts[e], scale[] -> b_next[e], least[], most[]",
    .attrs = {"speed"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      TensorType number{in[0].dtype, {}};
      return {in[0], number, number};
    },
    .cost = streaming_cost(3),
    .alias = {{.output = 0, .input = 0, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "small", .inputs = {f64({6}), f64({6}), f64({})}, .attrs = {{"speed", 0.25}}}},
};

}  // namespace sextant::ops
