// position_embedding: y[b,s,:] = x[b,s,:] + w[offset+start+s,:]. `start` is the first position, 0 when left out;
// `offset` are rows in front that no position has (OPT keeps two). Saves nothing. No row along p: a rank may need any
// of the rows, by the positions it holds.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

// Along s a rank adds the rows of the positions it holds, so `start` must be left out there.
const OpDef position_embedding{
    .name = "position_embedding",
    .contract = "y = x + the rows of w from `offset` + `start` on, one per position.",
    .operands = "x[b s h], w[p h], start?[] -> y[b s h]",
    .attrs = {"offset"},
    .rows = {"b", "s", "h"},
    .backward =
        [](BackwardScope& s) {
          if (s.needs_gradient(0)) s.pass(0, s.output_gradient(0));
          if (s.needs_gradient(1))
            s.emit({position_embedding_backward,
                    {s.output_gradient(0), s.input(1)},
                    {1},
                    s.op().attrs,
                    Phase::weight_gradient});
        },
    .cost = streaming_cost(1),
    .alias = {{.output = 0, .input = 0}},
    .examples = {{.name = "small", .inputs = {f64({2, 4, 6}), f64({8, 6})}},
                 {.name = "offset", .inputs = {f64({2, 4, 6}), f64({8, 6})}, .attrs = {{"offset", 2}}}},
};

const OpDef position_embedding_backward{
    .name = "position_embedding_backward",
    .contract = "dw[offset+s] = Σ_b dy[b,s]; the other rows get nothing.",
    .operands = "dy[b s h], w[p h] -> dw[p h]",
    .attrs = {"offset"},
    .wide = {0},
    .rows = {"b", "s", "h"},
    .cost = streaming_cost(1),
    .accumulate = Accumulate::supported,
    .examples = {{.name = "small", .inputs = {f64({2, 4, 6}), f64({8, 6})}},
                 {.name = "offset", .inputs = {f64({2, 4, 6}), f64({8, 6})}, .attrs = {{"offset", 2}}}},
};

}  // namespace sextant::ops
