// load_statistics: how evenly the slots of a step were spread over a layer's experts, for metrics. Nothing is trained
// on them.
//
// No row but the implied ones: all three are statistics of all experts.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef load_statistics{
    .name = "load_statistics",
    .contract =
        "peak = max(counts)/mean(counts); entropy = −Σ p·log(p)/log(E) with p = counts/Σ counts: 1 where all get the "
        "same, 0 where one gets all; unused = how many counts are 0.",
    .operands = "counts[e] -> peak[], entropy[], unused[]",
    .shape = [](const Attrs&, auto in) -> TensorTypes {
      TensorType number{in[0].dtype, {}};
      return {number, number, number};
    },
    .cost = streaming_cost(0),
    .recompute = Recompute::never,
    .examples = {{.name = "small", .inputs = {f64({6})}}},
};

}  // namespace sextant::ops
