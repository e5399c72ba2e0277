// rope: turns the q and k parts of a packed qkv row by angles that grow with the position; v passes through. Halves are
// paired (element j with j + head_dim/2), as Hugging Face stores weights. With rotary_dim only that many elements of a
// head turn, from the element rotary_first on (the front where that is not given), paired among themselves. With
// interleaved=1 neighbours are paired (element 2j with 2j + 1), as DeepSeek stores weights. Saves nothing: the gradient
// is the turn backwards, the same op with inverse=1. With amax=1 the largest magnitude of y is found in the same pass
// over memory.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

Attrs inverse_of(const Attrs& attrs) {
  Attrs inverse = attrs;
  inverse.set("inverse", int64_t{1} - attrs.integer_or("inverse", 0));
  if (attrs.has("amax")) inverse.set("amax", int64_t{0});
  return inverse;
}

}  // namespace

// Along s a rank turns by the positions it holds.
const OpDef rope{
    .name = "rope",
    .contract =
        "(a, b) -> m·(a·cos − b·sin, b·cos + a·sin) with angle (start+s)·f(j), m = attention_factor, else 1. f(j) = "
        "theta^(−2j/rotary_dim), divided by scale_factor where that is given: with low_freq_factor only where it turns "
        "less often over original_max_positions, blended up to high_freq_factor; with ramp_begin blended from the pair "
        "ramp_begin to ramp_end. With frequency_divisors each is divided by its own. rotary_dim is head_dim where it "
        "is "
        "not given; the turned elements begin at rotary_first. a and b are neighbours with interleaved=1, else lie "
        "rotary_dim/2 apart.",
    .operands = "qkv[b s e], start?[] -> y[b s e], amax?[]",
    .attrs = {"amax", "heads", "kv_heads", "head_dim", "value_dim", "theta", "inverse", "scale_factor",
              "low_freq_factor", "high_freq_factor", "original_max_positions", "rotary_dim", "ramp_begin", "ramp_end",
              "frequency_divisors", "attention_factor", "rotary_first", "interleaved"},
    .wide = {1},
    .rows = {"b", "s", "e"},
    .without_letter = kPartialMax,
    .backward =
        [](BackwardScope& s) {
          std::vector<ValueId> inputs{s.output_gradient(0)};
          if (s.input_count() == 2) inputs.push_back(s.input(1));
          s.emit({rope, std::move(inputs), {0}, inverse_of(s.op().attrs)});
        },
    .cost = streaming_cost(3),
    .alias = {{.output = 0, .input = 0}},
    // Split, rotate halves, multiply twice, add, join.
    .passes = {.compiled = {1.4, 2}, .jit = {2, 4}, .eager = {4.5, 12}},
    .examples = {{.name = "gqa",
                  .inputs = {f64({2, 4, 32})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"theta", 10000.0}}},
                 {.name = "amax",
                  .inputs = {f64({2, 4, 32})},
                  .attrs = {{"amax", 1}, {"heads", 4}, {"kv_heads", 2}, {"head_dim", 4}, {"theta", 10000.0}}},
                 {.name = "partial",
                  .inputs = {f64({2, 4, 48})},
                  .attrs = {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 6}, {"theta", 100.0}, {"rotary_dim", 4}}},
                 {.name = "end_of_head",
                  .inputs = {f64({2, 4, 60})},
                  .attrs = {{"heads", 4},
                            {"kv_heads", 2},
                            {"head_dim", 8},
                            {"value_dim", 6},
                            {"theta", 100.0},
                            {"rotary_dim", 4},
                            {"rotary_first", 4},
                            {"interleaved", 1}}},
                 {.name = "neighbours",
                  .inputs = {f64({1, 5, 24})},
                  .attrs = {{"heads", 2}, {"kv_heads", 2}, {"head_dim", 4}, {"theta", 100.0}, {"interleaved", 1}}},
                 {.name = "llama3",
                  .inputs = {f64({1, 6, 24})},
                  .attrs = {{"heads", 2},
                            {"kv_heads", 2},
                            {"head_dim", 4},
                            {"theta", 500.0},
                            {"scale_factor", 8.0},
                            {"low_freq_factor", 1.0},
                            {"high_freq_factor", 4.0},
                            {"original_max_positions", 16}}},
                 {.name = "linear",
                  .inputs = {f64({1, 6, 24})},
                  .attrs = {{"heads", 2}, {"kv_heads", 2}, {"head_dim", 4}, {"theta", 500.0}, {"scale_factor", 4.0}}},
                 {.name = "yarn",
                  .inputs = {f64({1, 6, 48})},
                  .attrs = {{"heads", 2},
                            {"kv_heads", 2},
                            {"head_dim", 8},
                            {"theta", 500.0},
                            {"scale_factor", 4.0},
                            {"ramp_begin", 0.0},
                            {"ramp_end", 3.0},
                            {"attention_factor", 1.14}}},
                 {.name = "longrope",
                  .inputs = {f64({1, 6, 24})},
                  .attrs = {{"heads", 2},
                            {"kv_heads", 2},
                            {"head_dim", 4},
                            {"theta", 500.0},
                            {"frequency_divisors", std::vector<double>{1.5, 3.0}},
                            {"attention_factor", 1.2}}}},
};

}  // namespace sextant::ops
