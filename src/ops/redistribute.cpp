// redistribute: the same tensor in another layout. Infer inserts it where two layouts differ; its gradient is the
// redistribution between the dual layouts. What it sends is the table of mesh/redistribution.h.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef redistribute{
    .name = "redistribute",
    .contract = "y = x, laid out as y's layout says.",
    .operands = "x[*] -> y[*]",
    .layout_rule = LayoutRule::free,
    .backward = [](BackwardScope& s) { s.emit({redistribute, {s.output_gradient(0)}, {0}}); },
    .cost = [](const Attrs&, auto in, auto out) { return Cost{.read = in[0].bytes(), .written = out[0].bytes()}; },
    .examples = {{.name = "small", .inputs = {f64({4, 6})}}},
};

}  // namespace sextant::ops
