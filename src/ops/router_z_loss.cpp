// router_z_loss: keeps the logits of a router small (Zoph et al. 2022): a coefficient times the mean over tokens of the
// square of their log-sum-exp. A sum over tokens, so ranks add up their parts, and layers theirs.
//
// No row along e: the log-sum-exp is one of all experts.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef router_z_loss{
    .name = "router_z_loss",
    .contract = "loss = coefficient/tokens·Σ over tokens of (log Σ_e exp(logits_e))².",
    .operands = "logits[b s e] -> loss[]",
    .attrs = {"tokens", "coefficient"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[0].dtype, {}}};
    },
    .rows = {"b", "s"},
    .backward =
        [](BackwardScope& s) {
          s.emit({router_z_loss_backward, {s.output_gradient(0), s.input(0)}, {0}, s.op().attrs});
        },
    .cost = streaming_cost(0),
    .examples = {{.name = "small", .inputs = {f64({2, 4, 6})}, .attrs = {{"tokens", 8}, {"coefficient", 0.5}}},
                 {.name = "three_sequences",
                  .inputs = {f64({3, 12, 4})},
                  .attrs = {{"tokens", 36}, {"coefficient", 0.25}}}},
};

const OpDef router_z_loss_backward{
    .name = "router_z_loss_backward",
    .contract = "dlogits_e = dloss·2·coefficient/tokens·lse·softmax(logits)_e with lse the log-sum-exp.",
    .operands = "dloss[], logits[b s e] -> dlogits[b s e]",
    .attrs = {"tokens", "coefficient"},
    .shape = [](const Attrs&, auto in) -> TensorTypes { return {in[1]}; },
    .rows = {"b", "s"},
    .cost = streaming_cost(6),
    .examples = {{.name = "small",
                  .inputs = {f64({}), f64({2, 4, 6})},
                  .attrs = {{"tokens", 8}, {"coefficient", 0.5}}}},
};

}  // namespace sextant::ops
