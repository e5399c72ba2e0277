// sgd, sgd_momentum: one step of stochastic gradient descent on one parameter, in place. Weight decay is a part of the
// gradient. scale = 0 means skip: weights and momentum stay as they are. The low bits of a 16-bit weight are those of
// ops/adamw.cpp.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef sgd{
    .name = "sgd",
    .contract = "p −= lr·(scale·g + weight_decay·p).",
    .operands = "p[*], g[*], lr[], scale[], low?[*] -> p_next[*], low_next?[*]",
    .attrs = {"weight_decay"},
    .shape = [](const Attrs&, auto in) { return updated_types(in, {0}, 4); },
    .rows = {"*"},
    .cost = streaming_cost(4),
    .alias = {{.output = 0, .input = 0, .rule = Alias::Rule::must},
              {.output = 1, .input = 4, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "small",
                  .inputs = {f64({3, 5}), f64({3, 5}), f64({}), f64({})},
                  .attrs = {{"weight_decay", 0.1}}}},
};

const OpDef sgd_momentum{
    .name = "sgd_momentum",
    .contract =
        "g' = scale·g + weight_decay·p; m = momentum·m + g'; p −= lr·(g' + momentum·m) with nesterov, else p −= lr·m.",
    .operands = "p[*], g[*], m[*], lr[], scale[], low?[*] -> p_next[*], m_next[*], low_next?[*]",
    .attrs = {"momentum", "nesterov", "weight_decay"},
    .shape =
        [](const Attrs&, auto in) {
          return updated_types(in, {0, 2}, 5);
        },
    .rows = {"*"},
    .cost = streaming_cost(8),
    .alias = {{.output = 0, .input = 0, .rule = Alias::Rule::must},
              {.output = 1, .input = 2, .rule = Alias::Rule::must},
              {.output = 2, .input = 5, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "small",
                  .inputs = {f64({3, 5}), f64({3, 5}), f64({3, 5}), f64({}), f64({})},
                  .attrs = {{"momentum", 0.9}, {"nesterov", 0}, {"weight_decay", 0.1}}},
                 {.name = "nesterov",
                  .inputs = {f64({3, 5}), f64({3, 5}), f64({3, 5}), f64({}), f64({})},
                  .attrs = {{"momentum", 0.9}, {"nesterov", 1}, {"weight_decay", 0.1}}}},
};

}  // namespace sextant::ops
