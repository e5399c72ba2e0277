// scale_seed, clip_scaled: dynamic loss scaling by the rule of torch.amp.GradScaler. The scale is a state on the
// device, so that steps may be issued before it is known whether an earlier one overflowed. 0, as fresh memory has it,
// stands for `initial`. The factor of the update undoes the scale: gradients are not touched for it.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

// No row but the implied ones: all are scalars.
const OpDef scale_seed{
    .name = "scale_seed",
    .contract = "y = seed·loss_scale, with `initial` for a loss_scale of 0.",
    .operands = "seed[], loss_scale[] -> y[]",
    .attrs = {"initial"},
    .cost = streaming_cost(1),
    .recompute = Recompute::never,
    .examples = {{.name = "scalar", .inputs = {f64({}), f64({})}, .attrs = {{"initial", 65536.0}}}},
};

// No row but the implied ones: the sum of squares must be whole before its root is taken.
const OpDef clip_scaled{
    .name = "clip_scaled",
    .contract =
        "s = loss_scale, or `initial` for 0; norm = sqrt(squares)/s; scale = min(1, clip/norm)/s, 1/s when clip is 0, "
        "0 "
        "when the norm is not finite. Then loss_scale = max(minimum, s·backoff) and good_steps = 0; with a finite norm "
        "good_steps grows by 1, and at growth_interval loss_scale = s·growth_factor, where that is finite, and "
        "good_steps = 0. used = s.",
    .operands =
        "squares[], loss_scale[], good_steps[] -> norm[], scale[], loss_scale_next[], good_steps_next[], used[]",
    .attrs = {"clip", "initial", "growth_factor", "backoff", "growth_interval", "minimum"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {in[0], in[0], in[1], in[2], in[1]};
    },
    .cost = streaming_cost(1),
    .alias = {{.output = 2, .input = 1, .rule = Alias::Rule::must},
              {.output = 3, .input = 2, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "grows",
                  .inputs = {f64({}), f64({}), i32({})},
                  .attrs = {{"clip", 0.5},
                            {"initial", 65536.0},
                            {"growth_factor", 2.0},
                            {"backoff", 0.5},
                            {"growth_interval", 2},
                            {"minimum", 1.0}}}},
};

}  // namespace sextant::ops
