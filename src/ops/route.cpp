// route: which experts each token goes to, and with what weight. One op for all families of routers; they differ in
// attributes:
//   top_k       experts per token
//   sigmoid     scores are sigmoid(logits), not softmax(logits)
//   normalise   the chosen weights are divided by their sum (plus 1e-20 with sigmoid, as DeepSeek-V3 does)
//   chosen_only weights are the softmax over the chosen logits alone (gpt-oss): the others get no gradient
//   scale       what weights are multiplied by at last
//   forced      expert j of row r is (r·top_k + j) mod e, where r counts a rank's own rows: to measure speed
//   groups      experts stand in so many groups, of which keep_groups with the best group_top scores in sum stay
// `correction` is added to scores where experts are chosen, and to nothing else (DeepSeek-V3's loss-free balancing).
// Sigmoids with neither correction nor groups are chosen by logits, which are in the same order and do not become equal
// by rounding where they are large. Among equal scores the lowest expert wins. Experts are listed by falling score.
//
// No row along e or k: an expert is chosen among all, and a weight may be a share of all that were chosen.
//
// Saves logits and the choice, and never chooses again: a second pass might choose otherwise by rounding.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef route{
    .name = "route",
    .contract =
        "s = softmax(logits) or sigmoid(logits); experts = top_k of s + correction, within the kept groups; weights = "
        "s of these, normalised and scaled as attributes say.",
    .operands = "logits[b s e], correction?[e] -> weights[b s k], experts[b s k]",
    .attrs = {"top_k", "sigmoid", "normalise", "chosen_only", "scale", "groups", "keep_groups", "group_top", "forced"},
    .shape = [](const Attrs& attrs, auto in) -> TensorTypes {
      GlobalShape chosen{in[0].shape[0], in[0].shape[1], attrs.integer("top_k")};
      return {{in[0].dtype, chosen}, {DType::i32, chosen}};
    },
    .rows = {"b", "s"},
    .backward =
        [](BackwardScope& s) {
          s.emit({route_backward, {s.output_gradient(0), s.input(0), s.output(1)}, {0}, s.op().attrs});
        },
    .cost = streaming_cost(8),
    .recompute = Recompute::never,
    .examples = {{.name = "softmax", .inputs = {f64({2, 4, 8})}, .attrs = {{"top_k", 2}}},
                 {.name = "normalised", .inputs = {f64({2, 4, 8})}, .attrs = {{"top_k", 3}, {"normalise", 1}}},
                 {.name = "chosen_only", .inputs = {f64({2, 4, 8})}, .attrs = {{"top_k", 3}, {"chosen_only", 1}}},
                 {.name = "all_experts", .inputs = {f64({2, 4, 4})}, .attrs = {{"top_k", 4}}},
                 {.name = "sigmoid", .inputs = {f64({2, 4, 8})}, .attrs = {{"top_k", 1}, {"sigmoid", 1}}},
                 {.name = "groups",
                  .inputs = {f64({2, 4, 8}), f64({8})},
                  .attrs = {{"top_k", 2},
                            {"sigmoid", 1},
                            {"normalise", 1},
                            {"scale", 2.5},
                            {"groups", 4},
                            {"keep_groups", 2},
                            {"group_top", 2}}}},
};

const OpDef route_backward{
    .name = "route_backward",
    .contract = "dlogits of the chosen weights; the choice itself has no gradient.",
    .operands = "dweights[b s k], logits[b s e], experts[b s k] -> dlogits[b s e]",
    .attrs = {"top_k", "sigmoid", "normalise", "chosen_only", "scale", "groups", "keep_groups", "group_top", "forced"},
    .shape = [](const Attrs&, auto in) -> TensorTypes { return {in[1]}; },
    .rows = {"b", "s"},
    .cost = streaming_cost(8),
    .examples = {{.name = "softmax",
                  .inputs = {f64({2, 4, 2}), f64({2, 4, 8}), i32({2, 4, 2})},
                  .attrs = {{"top_k", 2}},
                  .integers_below = 8},
                 {.name = "sigmoid",
                  .inputs = {f64({2, 4, 2}), f64({2, 4, 8}), i32({2, 4, 2})},
                  .attrs = {{"top_k", 2}, {"sigmoid", 1}, {"normalise", 1}, {"scale", 2.5}},
                  .integers_below = 8}},
};

}  // namespace sextant::ops
