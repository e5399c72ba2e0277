// send, recv, sum_stages: what passes between pipeline ranks. Partition inserts send and recv where a value is made on
// one rank and used on another; the update inserts sum_stages for the gradient of a weight that several ranks use.
//
// Attrs: `peer`, the other side's coordinate on the pipeline axis; `tag`, the same on both sides and different for
// every value that crosses; `ranks`, the coordinates that hold the weight, such as "0,3"; `dims` and `dtype` of what is
// received.
//
// No row but any state as it is: along every other axis each rank talks to the one with its own coordinates, whatever
// it holds.
#include "base/error.h"
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

GlobalShape parse_dims(std::string_view text) {
  std::vector<int64_t> dims;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    dims.push_back(std::stoll(std::string(text.substr(at, end - at))));
    at = end + 1;
  }
  return GlobalShape(std::move(dims));
}

}  // namespace

const OpDef send{
    .name = "send",
    .contract = "x goes to the peer; its bytes stay untouched until they have gone.",
    .operands = "x[*] -> ",
    .attrs = {"peer", "tag"},
    .shape = [](const Attrs&, auto) -> TensorTypes { return {}; },
    .layout_rule = LayoutRule::free,
    .cost = [](const Attrs&, auto in, auto) { return Cost{.read = in[0].bytes()}; },
    .message =
        [](const Attrs&, auto in, auto) {
          return Message{Message::Kind::send, {}, in[0].bytes()};
        },
    .recompute = Recompute::never,
    .holds_inputs = true,
};

const OpDef recv{
    .name = "recv",
    .contract = "y comes from the peer.",
    .operands = " -> y[*]",
    .attrs = {"peer", "tag", "dims", "dtype"},
    .shape = [](const Attrs& attrs, auto) -> TensorTypes {
      auto dtype = dtype_from_name(attrs.text_or("dtype", ""));
      BUG_IF(!dtype, "recv without a dtype");
      return {{*dtype, parse_dims(attrs.text_or("dims", ""))}};
    },
    .layout_rule = LayoutRule::free,
    .cost = [](const Attrs&, auto, auto out) { return Cost{.written = out[0].bytes()}; },
    .message =
        [](const Attrs&, auto, auto out) {
          return Message{Message::Kind::receive, {}, out[0].bytes()};
        },
    .recompute = Recompute::never,
};

const OpDef sum_stages{
    .name = "sum_stages",
    .contract = "y = Σ of x over the pipeline ranks that hold it, written over x.",
    .operands = "x[*] -> y[*]",
    .attrs = {"ranks"},
    .layout_rule = LayoutRule::free,
    .cost = streaming_cost(1),
    .message =
        [](const Attrs&, auto in, auto) {
          return Message{Message::Kind::stage_sum, {}, in[0].bytes()};
        },
    .alias = {{.output = 0, .input = 0, .rule = Alias::Rule::must}},
    .recompute = Recompute::never,
    .examples = {{.name = "alone", .inputs = {f64({3, 5})}, .attrs = {{"ranks", std::string("0")}}}},
};

}  // namespace sextant::ops
