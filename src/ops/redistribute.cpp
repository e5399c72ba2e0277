// redistribute: the same tensor in another layout. Infer inserts it where two layouts differ, one op per hop (one
// transfer over one set of axes); its gradient is the hop between the dual layouts. What it sends is the table of
// mesh/redistribution.h. No row but the table: any state to any other is what the op is for.
//
// Attrs. `transfer`, `axes`, `ranks` (how many), `packed` (whether the parts must be gathered up
// before they are sent) and `part` (elements of an all-to-all's largest part) repeat what the layouts say, for the
// reader and for kernels. `pin`, before infer: the states that nn/ wants, such as "tp:R". `into`=1: the last input is
// overwritten with the result.
#include "ops/ops.h"
#include "ops/shapes.h"
#include "ops/transfer.h"

namespace sextant::ops {

namespace {

std::optional<Message> hop_message(const Attrs& attrs, std::span<const TensorType> in,
                                   std::span<const TensorType> out) {
  std::optional<Transfer> transfer = transfer_of(attrs);
  std::optional<Collective> collective = transfer ? collective_of(*transfer) : std::nullopt;
  if (!collective) return std::nullopt;
  Message message{.kind = *collective, .axes = attrs.names("axes"), .element_bytes = size_of(in[0].dtype)};
  bool grows = *collective == Collective::all_reduce || *collective == Collective::all_gather;
  message.bytes = (grows ? out : in)[0].bytes();
  if (*transfer == Transfer::all_gather) message.part = in[0].bytes();
  if (*transfer == Transfer::reduce_scatter) message.part = out[0].bytes();
  if (*transfer == Transfer::all_to_all) message.part = {attrs.integer_or("part", 0) * message.element_bytes};
  return message;
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
      std::optional<Transfer> transfer = transfer_of(attrs);
      if (transfer == Transfer::nothing) return {{.output = 0, .input = 0, .rule = Alias::Rule::view}};
      bool in_place =
          transfer == Transfer::all_reduce || transfer == Transfer::all_reduce_max || transfer == Transfer::keep_first;
      return in_place ? std::vector<Alias>{{.output = 0, .input = 0, .rule = Alias::Rule::may}} : std::vector<Alias>{};
    },
    .examples = {{.name = "small", .inputs = {f64({4, 6})}}},
};

}  // namespace sextant::ops
