#include "view/listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/units.h"
#include "ir/names.h"
#include "ir/print.h"

namespace sextant {

namespace {

ListedValue listed_value(const Value& value, const Mesh& mesh, bool is_output) {
  return {.is_output = is_output,
          .id = value.id,
          .type = fmt::format("{}{}", name_of(value.dtype), value.shape.text()),
          .layout = layout_text(value.layout, mesh),
          .kind = name_of(value.kind),
          .path = value.path,
          .local = {},
          .place = {}};
}

ListedValue listed_value(const Value& value, const Program& program, bool is_output) {
  ListedValue listed = listed_value(value, program.mesh, is_output);
  listed.local = value.local.text();
  if (value.buffer >= 0) {
    const Buffer& buffer = program.buffers[static_cast<size_t>(value.buffer)];
    listed.place = {name_of(buffer.kind), buffer.offset, buffer.total_bytes()};
  }
  return listed;
}

// `values_of` makes a ListedValue of a Value of this Graph or Program.
template <class Ir, class ValuesOf>
ListedOp listed_op(const Ir& ir, const Op& op, int number, const ValuesOf& value_of) {
  ListedOp listed{.number = number,
                  .region = {},
                  .name = op.def->name,
                  .path = op.path,
                  .attrs = attrs_text(op.attrs),
                  .phase = name_of(op.phase),
                  .lane = name_of(op.lane),
                  .stage = op.stage,
                  .layer = op.block,
                  .runs_for = op.runs_for,
                  .waits = op.waits,
                  .values = {}};
  for (ValueId id : op.inputs) listed.values.push_back(value_of(ir[id], false));
  for (ValueId id : op.outputs) listed.values.push_back(value_of(ir[id], true));
  return listed;
}

std::string where_text(const ListedOp& op) {
  std::string out = fmt::format("{}, stage {}", op.phase, op.stage);
  if (op.layer >= 0) out += fmt::format(", layer {}", op.layer);
  if (op.lane != name_of(Lane::compute)) out += fmt::format(", {} lane", op.lane);
  if (op.runs_for == RunsFor::first_microbatch) out += ", first microbatch only";
  if (op.runs_for == RunsFor::last_microbatch) out += ", last microbatch only";
  if (!op.waits.empty()) out += fmt::format(", waits for op {}", fmt::join(op.waits, ", "));
  return out;
}

std::string place_text(const ListedValue& value) {
  std::string out = value.local.empty() ? "" : fmt::format("  here {}", value.local);
  if (value.place)
    out += fmt::format("  {} at {}, {} bytes", value.place->buffer, human_count(value.place->offset),
                       human_count(value.place->bytes));
  return out;
}

void append_op(const ListedOp& op, std::string& out) {
  out += fmt::format("op {}  {}{}  {}  ({})\n", op.number, op.name, op.attrs.empty() ? "" : " {" + op.attrs + "}",
                     op.path, where_text(op));
  size_t id = 0, type = 0, layout = 0, kind = 0, path = 0;
  for (const ListedValue& value : op.values) {
    id = std::max(id, fmt::format("%{}", value.id).size());
    type = std::max(type, value.type.size());
    layout = std::max(layout, value.layout.size());
    kind = std::max(kind, value.kind.size());
    if (!value.local.empty()) path = std::max(path, value.path.size());  // something stands behind it
  }
  for (const ListedValue& value : op.values)
    out += fmt::format("  {:<3}  {:<{}}  {:<{}}  {:<{}}  {:<{}}  {:<{}}{}\n", value.is_output ? "out" : "in",
                       fmt::format("%{}", value.id), id, value.type, type, value.layout, layout, value.kind, kind,
                       value.path, path, place_text(value));
}

// Ops under the headings of their regions.
std::string ops_text(const std::vector<ListedOp>& ops) {
  std::string out, region;
  for (const ListedOp& op : ops) {
    if (op.region != region) out += fmt::format("\nregion {}\n", region = op.region);
    append_op(op, out);
  }
  return out;
}

std::string count_text(size_t shown, size_t all, size_t values, const ListingFilter& filter) {
  return filter.is_set() ? fmt::format("{} of {} ops ({})", shown, all, filter.text())
                         : fmt::format("{} ops, {} values", all, values);
}

std::string schedule_text(const Program& program) {
  std::string out = "\nschedule (region, chunk, microbatch)\n";
  for (const Action& action : program.schedule)
    out += fmt::format("  {} {} {}{}\n", name_of(action.region), action.chunk, action.microbatch,
                       action.with_next ? " with the next" : "");
  return out;
}

}  // namespace

std::string ListingFilter::text() const {
  std::string out = layer ? fmt::format("layer {}", *layer) : "";
  if (kind) out += fmt::format("{}op {}", out.empty() ? "" : ", ", kind->name);
  return out;
}

std::vector<ListedOp> listed_ops(const Graph& graph, const ListingFilter& filter) {
  std::vector<ListedOp> ops;
  auto value_of = [&](const Value& value, bool is_output) { return listed_value(value, graph.mesh, is_output); };
  for (size_t i = 0; i < graph.ops.size(); ++i)
    if (filter.keeps(graph.ops[i])) ops.push_back(listed_op(graph, graph.ops[i], static_cast<int>(i), value_of));
  return ops;
}

std::vector<ListedOp> listed_ops(const Program& program, const ListingFilter& filter) {
  std::vector<ListedOp> ops;
  auto value_of = [&](const Value& value, bool is_output) { return listed_value(value, program, is_output); };
  int number = 0;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) {
      int own = number++;
      if (!filter.keeps(op)) continue;
      ops.push_back(listed_op(program, op, own, value_of));
      ops.back().region = fmt::format("{} of chunk {}", name_of(region.kind), region.chunk);
    }
  return ops;
}

std::string_view listing_legend() {
  return R"(How to read this (docs/explain.md says more)
  op N  NAME {constants}  PATH  (phase, stage of the pipeline, layer of the model; lane and waits where it has some)
    in, out  %ID  TYPE[SHAPE]  LAYOUT  KIND  PATH
  SHAPE   of the whole tensor, all ranks together; `here` is what one rank holds, then its buffer's class, offset and bytes
  LAYOUT  for each mesh axis, I where none is named: R copies used for different work, I copies and the same work,
          S(d) split along dim d, Z(d) the same in zigzag order, T(d) striped, B(d) in whole segments, P partial sums,
          P(max) parts of a maximum; d:a|b|c: dim d packs several tensors, its segments

)";
}

std::string listing(const Graph& graph, const ListingFilter& filter) {
  std::vector<ListedOp> ops = listed_ops(graph, filter);
  return fmt::format("graph {}, mesh {}: {}\n\n{}", graph.name, graph.mesh.text(),
                     count_text(ops.size(), graph.ops.size(), graph.values.size(), filter), ops_text(ops));
}

std::string listing(const Program& program, const ListingFilter& filter) {
  std::vector<ListedOp> ops = listed_ops(program, filter);
  size_t all = 0;
  for (const Region& region : program.regions) all += region.ops.size();
  std::string out = fmt::format("program {} of pipeline rank {}, mesh {}: {}\n", program.name, program.stage_rank,
                                program.mesh.text(), count_text(ops.size(), all, program.values.size(), filter));
  if (program.arena_bytes > 0)
    out += fmt::format("memory {} bytes, of which {} keep their content from step to step\n",
                       human_count(program.arena_bytes), human_count(program.persistent_bytes));
  if (program.host_arena.all > 0)
    out += fmt::format("on the host {} bytes, of which {} keep their content from step to step\n",
                       human_count(program.host_arena.all), human_count(program.host_arena.persistent));
  if (program.nvme_arena.all > 0)
    out += fmt::format("on NVMe {} bytes, all of which keep their content\n", human_count(program.nvme_arena.all));
  out += ops_text(ops);
  return filter.is_set() ? out : out + schedule_text(program);
}

}  // namespace sextant
