// sum_squares: Σ x², the part that one gradient adds to the global norm.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef sum_squares{
    .name = "sum_squares",
    .contract = "y = Σ x² over all elements.",
    .operands = "x[*] -> y[]",
    .rows = {"*"},
    .cost = [](const Attrs&, auto in,
               auto) { return Cost{.flops = {2 * static_cast<double>(in[0].shape.count())}, .read = in[0].bytes()}; },
    .held_by_several = HeldBySeveral::first_only,
    .examples = {{.name = "small", .inputs = {f64({3, 5})}}},
};

}  // namespace sextant::ops
