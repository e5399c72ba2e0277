// send, recv, sum_stages: what passes between pipeline ranks. Partition inserts send and recv where a value is made on
// one rank and used on another; the update inserts sum_stages for the gradient of a weight that several ranks use.
//
// Attrs: `peer`, the other side's coordinate on the pipeline axis; `to_copy`, whether it is the other copy of a
// pipeline that has two; `tag`, the same on both sides and different for every value that crosses; `stages`, the
// coordinates on the pipeline axis that hold the weight; `dims` and `dtype` of what is received.
//
// No row but any state as it is: along every other axis but that of copies each rank talks to the one with its own
// coordinates, whatever it holds.
#include "base/error.h"
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef send{
    .name = "send",
    .contract = "x goes to the peer; its bytes stay untouched until they have gone.",
    .operands = "x[*] -> ",
    .attrs = {"peer", "tag", "to_copy"},
    .shape = [](const Attrs&, auto) -> TensorTypes { return {}; },
    .layout_rule = LayoutRule::free,
    .cost = [](const Attrs&, auto in, auto) { return Cost{.read = in[0].bytes()}; },
    .message = [](const Attrs&, auto in, auto) { return Message{.kind = Collective::send, .bytes = in[0].bytes()}; },
    .recompute = Recompute::never,
    .holds_inputs = true,
};

const OpDef recv{
    .name = "recv",
    .contract = "y comes from the peer.",
    .operands = " -> y[*]",
    .attrs = {"peer", "tag", "to_copy", "dims", "dtype"},
    .shape = [](const Attrs& attrs, auto) -> TensorTypes {
      auto dtype = dtype_from_name(attrs.text_or("dtype", ""));
      BUG_IF(!dtype, "recv without a dtype");
      return {{*dtype, GlobalShape(attrs.integers("dims"))}};
    },
    .layout_rule = LayoutRule::free,
    .cost = [](const Attrs&, auto, auto out) { return Cost{.written = out[0].bytes()}; },
    .message = [](const Attrs&, auto,
                  auto out) { return Message{.kind = Collective::receive, .bytes = out[0].bytes()}; },
    .recompute = Recompute::never,
};

const OpDef sum_stages{
    .name = "sum_stages",
    .contract = "y = Σ of x over the pipeline ranks that hold it, written over x.",
    .operands = "x[*] -> y[*]",
    .attrs = {"stages"},
    .layout_rule = LayoutRule::free,
    .cost = streaming_cost(1),
    .message =
        [](const Attrs& attrs, auto in, auto) {
          return Message{.kind = Collective::all_reduce,
                         .stages = attrs.integers("stages"),
                         .bytes = in[0].bytes(),
                         .element_bytes = size_of(in[0].dtype)};
        },
    .alias = {{.output = 0, .input = 0, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "alone", .inputs = {f64({3, 5})}, .attrs = {{"stages", std::vector<int64_t>{0}}}}},
};

}  // namespace sextant::ops
