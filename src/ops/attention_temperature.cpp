// attention_temperature: makes queries longer the later they stand, by steps of so many positions, so that softmax
// stays sharp over long contexts (Nakanishi 2025); Llama 4 has it in its layers without RoPE. Keys and values pass
// through. Saves nothing: the gradient is the same op.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

// Along s a rank scales by the positions it holds.
const OpDef attention_temperature{
    .name = "attention_temperature",
    .contract = "y = x·(1 + strength·ln(1 + floor((start + s + 1)/positions))) in each head of q; k and v as they are.",
    .operands = "qkv[b s e], start?[] -> y[b s e]",
    .attrs = {"heads", "kv_heads", "head_dim", "value_dim", "positions", "strength"},
    .rows = {"b", "s", "e"},
    .backward =
        [](BackwardScope& s) {
          std::vector<ValueId> inputs{s.output_gradient(0)};
          if (s.input_count() == 2) inputs.push_back(s.input(1));
          s.emit({attention_temperature, std::move(inputs), {0}, s.op().attrs});
        },
    .cost = streaming_cost(1),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "gqa",
                  .inputs = {f64({2, 12, 32})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"positions", 4}, {"strength", 0.5}}},
                 {.name = "odd",
                  .inputs = {f64({1, 7, 15})},
                  .attrs = {{"heads", 3}, {"kv_heads", 1}, {"head_dim", 3}, {"positions", 2}, {"strength", 0.1}}},
                 {.name = "later",
                  .inputs = {f64({2, 4, 32}), i32({})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"positions", 3}, {"strength", 0.5}},
                  .integers_below = 9}},
};

}  // namespace sextant::ops
