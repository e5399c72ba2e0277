// adamw: one step of AdamW (Loshchilov & Hutter 2019) on one parameter, in place. scale = 0 means skip: weights and
// moments stay as they are.
//
// A parameter that is computed with in bf16 has its full precision in two halves: p, the value rounded to bf16, and
// `low`, the low 16 bits of the f32. Together they are the f32 bit for bit (rounding moved the upper half up exactly
// where the top bit of `low` is set), so the master copy costs two bytes and not four.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef adamw{
    .name = "adamw",
    .contract =
        "g' = scale·g; m = beta1·m + (1−beta1)·g'; v = beta2·v + (1−beta2)·g'²; "
        "p −= lr·(m/(1−beta1^step) / (sqrt(v/(1−beta2^step)) + eps) + weight_decay·p).",
    .operands =
        "p[*], g[*], m[*], v[*], lr[], scale[], step[], low?[*] -> p_next[*], m_next[*], v_next[*], low_next?[*]",
    .attrs = {"beta1", "beta2", "eps", "weight_decay", "kept_wide"},
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
    .passes = {.compiled = {1, 1}, .jit = {1.05, 1}, .eager = {1.1, 1}},
    .examples = {{.name = "small",
                  .inputs = {f64({3, 5}), f64({3, 5}), f64({3, 5}), f64({3, 5}), f64({}), f64({}), i32({})},
                  .attrs = {{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", 0.1}}}},
};

}  // namespace sextant::ops
