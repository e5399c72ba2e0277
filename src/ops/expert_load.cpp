// expert_load: what the loss that balances experts is made of, for one layer: how many slots each expert got, and the
// sum over tokens of the score that each expert had. Both are sums over tokens, so ranks add up their parts, and layers
// theirs.
//
// sequence_load: the same for each sequence.
//
// balance_loss: a coefficient times E·Σ_e (counts_e/N)·(scores_e/N) with N tokens: top_k where all experts get the
// same, more where some get more. With the loads of layers added up it is the one of transformers, over the layers
// joined; Megatron's and Switch's is that of a single layer, divided by top_k, and DeepSeek's the mean over sequences
// of that.
//
// No row along e or k: a score is a share of all experts', and an expert is chosen once however many are chosen.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef expert_load{
    .name = "expert_load",
    .contract =
        "scores_e = Σ over tokens of softmax(logits)_e, or of sigmoid(logits) divided by its sum; counts_e = how often "
        "e is among experts.",
    .operands = "logits[b s e], experts[b s k] -> scores[e], counts[e]",
    .attrs = {"sigmoid"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      TensorType sums{in[0].dtype, {in[0].shape[2]}};
      return {sums, sums};
    },
    .rows = {"b", "s"},
    .backward =
        [](BackwardScope& s) {
          s.emit({expert_load_backward, {s.output_gradient(0), s.input(0)}, {0}, s.op().attrs});
        },
    .cost = streaming_cost(0),
    .examples =
        {{.name = "softmax", .inputs = {f64({2, 4, 6}), i32({2, 4, 2})}, .attrs = {}, .integers_below = 6},
         {.name = "sigmoid",
          .inputs = {f64({2, 4, 6}), i32({2, 4, 2})},
          .attrs = {{"sigmoid", 1}},
          .integers_below = 6},
         {.name = "three_sequences", .inputs = {f64({3, 12, 4}), i32({3, 12, 1})}, .attrs = {}, .integers_below = 4}},
};

const OpDef expert_load_backward{
    .name = "expert_load_backward",
    .contract = "dlogits = p_e·(dscores_e − Σ p·dscores) with p the softmax; likewise for normalised sigmoids.",
    .operands = "dscores[e], logits[b s e] -> dlogits[b s e]",
    .attrs = {"sigmoid"},
    .shape = [](const Attrs&, auto in) -> TensorTypes { return {in[1]}; },
    .rows = {"b", "s"},
    .cost = streaming_cost(8),
    .examples = {{.name = "softmax", .inputs = {f64({6}), f64({2, 4, 6})}},
                 {.name = "three_sequences", .inputs = {f64({4}), f64({3, 12, 4})}}},
};

const OpDef sequence_load{
    .name = "sequence_load",
    .contract = "expert_load of each sequence by itself.",
    .operands = "logits[b s e], experts[b s k] -> scores[b e], counts[b e]",
    .attrs = {"sigmoid"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      TensorType sums{in[0].dtype, {in[0].shape[0], in[0].shape[2]}};
      return {sums, sums};
    },
    .rows = {"b", "s"},
    .backward =
        [](BackwardScope& s) {
          s.emit({sequence_load_backward, {s.output_gradient(0), s.input(0)}, {0}, s.op().attrs});
        },
    .cost = streaming_cost(0),
    .examples = {{.name = "softmax", .inputs = {f64({2, 4, 6}), i32({2, 4, 2})}, .attrs = {}, .integers_below = 6},
                 {.name = "sigmoid",
                  .inputs = {f64({3, 12, 4}), i32({3, 12, 1})},
                  .attrs = {{"sigmoid", 1}},
                  .integers_below = 4}},
};

const OpDef sequence_load_backward{
    .name = "sequence_load_backward",
    .contract = "expert_load_backward of each sequence by itself.",
    .operands = "dscores[b e], logits[b s e] -> dlogits[b s e]",
    .attrs = {"sigmoid"},
    .shape = [](const Attrs&, auto in) -> TensorTypes { return {in[1]}; },
    .rows = {"b", "s"},
    .cost = streaming_cost(8),
    .examples = {{.name = "softmax", .inputs = {f64({2, 6}), f64({2, 4, 6})}},
                 {.name = "sigmoid", .inputs = {f64({3, 4}), f64({3, 12, 4})}, .attrs = {{"sigmoid", 1}}}},
};

const OpDef balance_loss{
    .name = "balance_loss",
    .contract = "loss = coefficient·experts/sequences·Σ counts·scores / tokens²; counts are constants.",
    .operands = "scores[*], counts[*] -> loss[]",
    .attrs = {"experts", "tokens", "sequences", "coefficient"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      return {{in[0].dtype, {}}};
    },
    .rows = {"*"},
    .backward =
        [](BackwardScope& s) {
          s.emit({balance_loss_backward, {s.output_gradient(0), s.input(1)}, {0}, s.op().attrs});
        },
    .cost = streaming_cost(0),
    .examples = {{.name = "small",
                  .inputs = {f64({6}), f64({6})},
                  .attrs = {{"experts", 6}, {"tokens", 12}, {"coefficient", 0.5}}},
                 {.name = "sequences",
                  .inputs = {f64({2, 6}), f64({2, 6})},
                  .attrs = {{"experts", 6}, {"tokens", 4}, {"sequences", 2}, {"coefficient", 0.5}}}},
};

const OpDef balance_loss_backward{
    .name = "balance_loss_backward",
    .contract = "dscores = dloss·coefficient·experts/sequences·counts / tokens².",
    .operands = "dloss[], counts[*] -> dscores[*]",
    .attrs = {"experts", "tokens", "sequences", "coefficient"},
    .shape = [](const Attrs&, auto in) -> TensorTypes { return {in[1]}; },
    .rows = {"*"},
    .cost = streaming_cost(1),
    .examples = {{.name = "small",
                  .inputs = {f64({}), f64({2, 6})},
                  .attrs = {{"experts", 6}, {"tokens", 12}, {"sequences", 2}, {"coefficient", 0.5}}}},
};

}  // namespace sextant::ops
