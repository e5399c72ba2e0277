// qk_norm: RMS norm of every query head and every key head of a packed qkv row, as Qwen 3 has before RoPE; v passes
// through. All query heads share one weight, all key heads another; without weights heads are divided by their root
// mean square alone, as Llama 4 has behind RoPE. Saves qkv: one number per head would be as much trouble to lay out as
// it is little to compute again. No row along d: the mean is that of the whole head.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef qk_norm{
    .name = "qk_norm",
    .contract =
        "y = x·r·w in each head of q and k, r = 1/sqrt(mean(x²) + eps), w = 1 where it is not given; v as it is.",
    .operands = "qkv[b s e], wq?[d], wk?[d] -> y[b s e]",
    .attrs = {"heads", "kv_heads", "head_dim", "eps"},
    .rows = {"b", "s", "e"},
    .backward =
        [](BackwardScope& s) {
          std::vector<ValueId> inputs{s.output_gradient(0), s.input(0)};
          std::vector<int> gradients_of{0};
          for (int weight = 1; weight < static_cast<int>(s.input_count()); ++weight) {
            inputs.push_back(s.input(weight));
            gradients_of.push_back(weight);
          }
          s.emit({qk_norm_backward, std::move(inputs), std::move(gradients_of), s.op().attrs});
        },
    .cost = streaming_cost(4),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "gqa",
                  .inputs = {f64({2, 4, 32}), f64({4}), f64({4})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"eps", 1e-5}}},
                 {.name = "no_weights",
                  .inputs = {f64({2, 4, 32})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"eps", 1e-5}}},
                 {.name = "odd",
                  .inputs = {f64({1, 3, 15}), f64({3}), f64({3})},
                  .attrs = {{"heads", 3}, {"kv_heads", 1}, {"head_dim", 3}, {"eps", 1e-6}}}},
};

const OpDef qk_norm_backward{
    .name = "qk_norm_backward",
    .contract =
        "In each head of q and k dx = r·(dy·w − x·r²·mean(dy·w·x)), dw = Σ dy·x·r over rows and heads; dv = dy.",
    .operands = "dy[b s e], qkv[b s e], wq?[d], wk?[d] -> dqkv[b s e], dwq?[d], dwk?[d]",
    .attrs = {"heads", "kv_heads", "head_dim", "eps"},
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      TensorTypes types{in[0]};
      for (size_t weight = 2; weight < in.size(); ++weight)
        types.push_back({wide_of(in[weight].dtype), in[weight].shape});
      return types;
    },
    .rows = {"b", "s", "e"},
    .cost = streaming_cost(9),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "gqa",
                  .inputs = {f64({2, 4, 32}), f64({2, 4, 32}), f64({4}), f64({4})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"eps", 1e-5}}},
                 {.name = "no_weights",
                  .inputs = {f64({2, 4, 32}), f64({2, 4, 32})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"eps", 1e-5}}}},
};

}  // namespace sextant::ops
