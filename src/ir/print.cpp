#include "ir/print.h"

#include <fmt/format.h>

#include <iterator>

#include "base/rng.h"
#include "ir/names.h"

namespace sextant {

namespace {

using Out = std::back_insert_iterator<std::string>;

std::string ids_text(const std::vector<ValueId>& ids, std::string_view separator) {
  std::string out;
  for (ValueId id : ids) out += fmt::format("{}%{}", out.empty() ? std::string_view() : separator, id);
  return out;
}

std::string attr_text(const AttrValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* text = std::get_if<std::string>(&value)) return fmt::format("\"{}\"", *text);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return fmt::format("[{}]", fmt::join(*list, " "));
  if (const auto* list = std::get_if<std::vector<double>>(&value)) return fmt::format("({})", fmt::join(*list, " "));
  if (const auto* list = std::get_if<std::vector<std::string>>(&value))
    return fmt::format("<{}>", fmt::join(*list, " "));
  // The shortest decimal that reads back to the same double; the point tells it from an integer.
  std::string out = fmt::format("{}", std::get<double>(value));
  return out.find_first_of(".en") == std::string::npos ? out + ".0" : out;
}

void print_op(const Op& op, Out out) {
  fmt::format_to(out, "op {} = {}({}) {{{}}} {} {} {} {} {} {} {}\n", ids_text(op.outputs, " "), op.def->name,
                 ids_text(op.inputs, ", "), attrs_text(op.attrs), name_of(op.phase), op.stage, op.block,
                 name_of(op.lane), name_in(kRunsForNames, op.runs_for), op.parameter, op.path);
  if (!op.waits.empty()) fmt::format_to(out, "  waits {}\n", fmt::join(op.waits, " "));
}

void print_value(const Value& value, const Mesh& mesh, Out out) {
  fmt::format_to(out, "value %{} {} {} {}{} {} {} {}", value.id, name_of(value.kind), value.of, name_of(value.dtype),
                 value.shape.text(), layout_text(value.layout, mesh), init_text(value.init), value.path);
  if (!value.stored.path.empty())
    fmt::format_to(out, " in {}+{}+{}", value.stored.path, value.stored.first_row, value.stored.first_packed);
  if (!value.packed_rows.empty()) fmt::format_to(out, " packs {}", fmt::join(value.packed_rows, "|"));
  if (value.balance_speed) fmt::format_to(out, " balance {}", *value.balance_speed);
  if (value.counted != TallyOf::load) fmt::format_to(out, " {}", name_in(kTallyNames, value.counted));
  if (value.measured)
    fmt::format_to(out, " measures {} {} {}", value.measured->layer,
                   name_in(kMeasuredTensorNames, value.measured->tensor),
                   name_in(kMeasuredNumbersNames, value.measured->numbers));
  if (value.space != MemorySpace::device) fmt::format_to(out, " space {}", name_of(value.space));
  // Most parameters have those of the mesh.
  if (value.kind == ValueKind::parameter && value.data_axes != mesh.data_axes()) {
    std::vector<std::string> names;
    for (int axis : value.data_axes) names.push_back(mesh.name(axis));
    fmt::format_to(out, " data <{}>", fmt::join(names, " "));
  }
  fmt::format_to(out, "\n");
}

}  // namespace

std::string attrs_text(const Attrs& attrs) {
  std::string out;
  for (const auto& [name, value] : attrs.entries())
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", name, attr_text(value));
  return out;
}

std::string print(const Graph& graph) {
  std::string text;
  Out out(text);
  fmt::format_to(out, "graph {}\nmesh {}\n", graph.name, graph.mesh.text());
  for (const Value& value : graph.values) print_value(value, graph.mesh, out);
  for (const Op& op : graph.ops) print_op(op, out);
  return text;
}

std::string print(const Program& program) {
  std::string text;
  Out out(text);
  fmt::format_to(out, "program {} {} {}\nmesh {}\n", program.stage_rank, program.gradient_slots, program.name,
                 program.mesh.text());
  fmt::format_to(out, "arena {} {}\n", program.persistent_bytes, program.arena_bytes);
  for (MemorySpace space : {MemorySpace::host, MemorySpace::nvme})
    if (ArenaExtent extent = program.arena(space); extent != ArenaExtent{})
      fmt::format_to(out, "arena_of {} {} {}\n", name_of(space), extent.persistent, extent.all);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    fmt::format_to(out, "buffer {} {} {} {} {}", i, name_of(buffer.kind), buffer.offset, buffer.bytes, buffer.slots);
    if (buffer.space != MemorySpace::device) fmt::format_to(out, " {}", name_of(buffer.space));
    fmt::format_to(out, "\n");
  }
  for (const Value& value : program.values) {
    print_value(value, program.mesh, out);
    fmt::format_to(out, "  local %{} {} {}\n", value.id, value.local.text(), value.buffer);
  }
  size_t op_index = 0;
  for (const Region& region : program.regions) {
    fmt::format_to(out, "region {} {}\n", name_of(region.kind), region.chunk);
    for (const Op& op : region.ops) {
      print_op(op, out);
      if (op_index < program.workspaces.size() && program.workspaces[op_index] >= 0)
        fmt::format_to(out, "  workspace {}\n", program.workspaces[op_index]);
      ++op_index;
    }
  }
  for (const Action& action : program.schedule)
    fmt::format_to(out, "action {} {} {}{}\n", name_of(action.region), action.chunk, action.microbatch,
                   action.with_next ? " with_next" : "");
  return text;
}

uint64_t hash_of(const Program& program) {
  return hash64(print(program));
}

}  // namespace sextant
