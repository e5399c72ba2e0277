// adamw_int8: adamw whose means are kept in 8 bits (base/dynamic_map.h): m and v are codes, and every `block`
// neighbours in a row share a scale, their largest magnitude. The step itself is computed with the means before they
// are rounded. With round_weight=1 the weight is rounded as ops/adamw_rounded.cpp says.
#include "base/units.h"
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef adamw_int8{
    .name = "adamw_int8",
    .contract =
        "adamw of m = signed_map[m]·m_absmax and v = positive_map[v]·v_absmax; then absmax is the largest |m|, v of "
        "each block, and the codes are those of the nearest numbers. A v above 0 does not become 0.",
    .operands =
        "p[o i], g[o i], m[o i], v[o i], lr[], scale[], step[], m_absmax[o k], v_absmax[o k], low?[o i] -> "
        "p_next[o i], m_next[o i], v_next[o i], m_absmax_next[o k], v_absmax_next[o k], low_next?[o i]",
    .attrs = {"beta1", "beta2", "eps", "weight_decay", "block", "round_weight", "key", "first_row"},
    .shape =
        [](const Attrs&, auto in) {
          return updated_types(in, {0, 2, 3, 7, 8}, 9);
        },
    // Ranks hold whole blocks: src/passes/update.cpp sees to it.
    .rows = {"o",
             "p:S(i) g:S(i) m:S(i) v:S(i) lr:R scale:R step:R m_absmax:S(k) v_absmax:S(k) low:S(i) -> "
             "p_next:S(i) m_next:S(i) v_next:S(i) m_absmax_next:S(k) v_absmax_next:S(k) low_next:S(i)"},
    .cost = streaming_cost(30),
    .alias = {{.output = 0, .input = 0, .rule = Alias::Rule::must},
              {.output = 1, .input = 2, .rule = Alias::Rule::must},
              {.output = 2, .input = 3, .rule = Alias::Rule::must},
              {.output = 3, .input = 7, .rule = Alias::Rule::must},
              {.output = 4, .input = 8, .rule = Alias::Rule::must},
              {.output = 5, .input = 9, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "blocks",
                  .inputs = {f64({4, 16}), f64({4, 16}), u8({4, 16}), u8({4, 16}), f64({}), f64({}), i32({}),
                             f64({4, 4}), f64({4, 4})},
                  .attrs = {{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", 0.1}, {"block", 4}},
                  .integers_below = 256}},
};

}  // namespace sextant::ops
