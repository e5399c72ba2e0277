// all_reduce_bucket: several gradients summed over the ranks of a group in one message, each in place. The overlap pass
// makes it of single reductions, so that they are few and large; `count` says how many.
//
// No row but those its reductions had: it changes every operand from P to I along `axes`.
#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

const OpDef all_reduce_bucket{
    .name = "all_reduce_bucket",
    .contract = "y_i = Σ of x_i over the ranks of the group, written over x_i.",
    .operands = "x...[*] -> y[*]",
    .attrs = {"axes", "ranks", "count"},
    .shape = [](const Attrs&, auto in) -> TensorTypes { return TensorTypes(in.begin(), in.end()); },
    .layout_rule = LayoutRule::free,
    .cost = streaming_cost(1),
    .message =
        [](const Attrs& attrs, auto in, auto) {
          Message message{
              .kind = Collective::all_reduce, .axes = attrs.names("axes"), .element_bytes = size_of(in[0].dtype)};
          for (const TensorType& t : in) message.bytes += t.bytes();
          return message;
        },
    .alias_by_attrs =
        [](const Attrs& attrs) {
          std::vector<Alias> aliases;
          for (int i = 0; i < static_cast<int>(attrs.integer_or("count", 1)); ++i)
            aliases.push_back({.output = i, .input = i, .rule = Alias::Rule::must});
          return aliases;
        },
    .recompute = Recompute::never,
    .examples = {{.name = "one",
                  .inputs = {f64({3, 5})},
                  .attrs = {{"axes", std::vector<std::string>{"dp"}}, {"ranks", 1}, {"count", 1}}}},
};

}  // namespace sextant::ops
