// lion: one step of Lion (Chen et al. 2023) on one parameter, in place. scale = 0 means skip: weights and momentum stay
// as they are. The low bits of a 16-bit weight are those of ops/adamw.cpp.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef lion{
    .name = "lion",
    .contract =
        "g' = scale·g; p −= lr·(sign(beta1·m + (1−beta1)·g') + weight_decay·p); m = beta2·m + (1−beta2)·g'. The sign "
        "of "
        "0 is 0.",
    .operands = "p[*], g[*], m[*], lr[], scale[], low?[*] -> p_next[*], m_next[*], low_next?[*]",
    .attrs = {"beta1", "beta2", "weight_decay"},
    .shape =
        [](const Attrs&, auto in) {
          return updated_types(in, {0, 2}, 5);
        },
    .rows = {"*"},
    .cost = streaming_cost(10),
    .alias = {{.output = 0, .input = 0, .rule = Alias::Rule::must},
              {.output = 1, .input = 2, .rule = Alias::Rule::must},
              {.output = 2, .input = 5, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "small",
                  .inputs = {f64({3, 5}), f64({3, 5}), f64({3, 5}), f64({}), f64({})},
                  .attrs = {{"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0.1}}}},
};

}  // namespace sextant::ops
