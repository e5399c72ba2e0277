// redistribute: the same tensor in another layout. Infer inserts it where two layouts differ, one op per hop (one
// transfer over one set of axes); its gradient is the hop between the dual layouts. What it sends is the table of
// mesh/redistribution.h. No row but the table: any state to any other is what the op is for.
//
// Attrs. `transfer`, `axes` (such as "dp,cp"), `ranks` (how many), `packed` (whether the parts must be gathered up
// before they are sent) and `part` (elements of an all-to-all's largest part) repeat what the layouts say, for the
// reader and for kernels. `pin`, before infer: the states that nn/ wants, such as "tp:R". `into`=1: the last input is
// overwritten with the result.
#include "mesh/redistribution.h"

#include "ops/ops.h"
#include "ops/shapes.h"

namespace sextant::ops {

namespace {

std::optional<Message> hop_message(const Attrs& attrs, std::span<const TensorType> in,
                                   std::span<const TensorType> out) {
  using enum Message::Kind;
  std::string transfer = attrs.text_or("transfer", ""), axes = attrs.text_or("axes", "");
  if (transfer == name_of(Transfer::all_reduce)) return Message{all_reduce, axes, out[0].bytes()};
  if (transfer == name_of(Transfer::all_gather)) return Message{all_gather, axes, out[0].bytes()};
  if (transfer == name_of(Transfer::reduce_scatter)) return Message{reduce_scatter, axes, in[0].bytes()};
  if (transfer == name_of(Transfer::all_to_all)) return Message{all_to_all, axes, in[0].bytes()};
  return std::nullopt;
}

}  // namespace

const OpDef redistribute{
    .name = "redistribute",
    .contract = "y = x, laid out as y's layout says.",
    .operands = "x[*] -> y[*]",
    .attrs = {"transfer", "axes", "ranks", "packed", "part", "pin"},
    .layout_rule = LayoutRule::free,
    .backward =
        [](BackwardScope& s) {
          s.emit({redistribute, {s.output_gradient(0)}, {0}});
        },
    .cost = [](const Attrs&, auto in, auto out) { return Cost{.read = in[0].bytes(), .written = out[0].bytes()}; },
    .message = hop_message,
    .alias_by_attrs = [](const Attrs& attrs) -> std::vector<Alias> {
      std::string transfer = attrs.text_or("transfer", "");
      if (transfer == name_of(Transfer::nothing)) return {{.output = 0, .input = 0, .rule = Alias::Rule::view}};
      bool in_place = transfer == name_of(Transfer::all_reduce) || transfer == name_of(Transfer::keep_first);
      return in_place ? std::vector<Alias>{{.output = 0, .input = 0, .rule = Alias::Rule::may}} : std::vector<Alias>{};
    },
    .examples = {{.name = "small", .inputs = {f64({4, 6})}}},
};

}  // namespace sextant::ops
