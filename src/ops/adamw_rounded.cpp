// adamw_rounded: adamw of which something is kept in bf16 alone, without the low bits of ops/adamw.cpp: m and v where
// their dtype is bf16, p with round_weight=1 (of a p in f32 too: it then holds bf16 numbers). These are rounded to one
// of their neighbours at random, so that steps smaller than their distance count on average.
//
// The random bits follow from `key`, the step and the element's place in the whole tensor (exec/rounding_bits.h): the
// same on every mesh. `first_row` is where p begins in the tensor that has the key.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef adamw_rounded{
    .name = "adamw_rounded",
    .contract = "adamw; then m, v and p where they are bf16 are rounded to a neighbour at random, with its mean.",
    .operands =
        "p[*], g[*], m[*], v[*], lr[], scale[], step[], low?[*] -> p_next[*], m_next[*], v_next[*], low_next?[*]",
    .attrs = {"beta1", "beta2", "eps", "weight_decay", "kept_wide", "round_weight", "key", "first_row"},
    .shape =
        [](const Attrs&, auto in) {
          return updated_types(in, {0, 2, 3}, 7);
        },
    .rows = {"*"},
    .cost = streaming_cost(14),
    .alias = {{.output = 0, .input = 0, .rule = Alias::Rule::must},
              {.output = 1, .input = 2, .rule = Alias::Rule::must},
              {.output = 2, .input = 3, .rule = Alias::Rule::must},
              {.output = 3, .input = 7, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "weight",
                  .inputs = {f64({4, 6}), f64({4, 6}), f64({4, 6}), f64({4, 6}), f64({}), f64({}), i32({})},
                  .attrs = {{"beta1", 0.9},
                            {"beta2", 0.95},
                            {"eps", 1e-8},
                            {"weight_decay", 0.1},
                            {"round_weight", 1},
                            {"key", 77},
                            {"first_row", 2}}}},
};

}  // namespace sextant::ops
