#include "ir/program.h"

#include <algorithm>

#include "base/error.h"

namespace sextant {

bool same_work(const Action& a, const Action& b) {
  return a.region == b.region && a.chunk == b.chunk && a.microbatch == b.microbatch;
}

std::span<const Action> leading_unit(std::span<const Action> actions) {
  size_t size = 0;
  while (size < actions.size() && actions[size].with_next) ++size;
  return actions.first(std::min(size + 1, actions.size()));
}

bool is_pair(std::span<const Action> unit) {
  return unit.size() > 1 && unit.front().region == RegionKind::forward;
}

ArenaExtent Program::arena(MemorySpace space) const {
  if (space == MemorySpace::host) return host_arena;
  return space == MemorySpace::nvme ? nvme_arena : ArenaExtent{persistent_bytes, arena_bytes};
}

const Value* Program::find(std::string_view path) const {
  for (const Value& value : values)
    if (value.path == path) return &value;
  return nullptr;
}

const Value& Program::at(std::string_view path) const {
  const Value* value = find(path);
  BUG_IF(!value, "program {} has no value '{}'", name, path);
  return *value;
}

TensorTypes local_types(const Program& program, const std::vector<ValueId>& ids) {
  TensorTypes local;
  for (ValueId id : ids) {
    auto dims = program[id].local.dims();
    local.push_back({program[id].dtype, GlobalShape(std::vector<int64_t>(dims.begin(), dims.end()))});
  }
  return local;
}

MemorySpace space_of(const Program& program, const Op& op) {
  bool any = false;
  for (const auto* ids : {&op.inputs, &op.outputs})
    for (ValueId id : *ids) {
      if (program[id].space == MemorySpace::device) return MemorySpace::device;
      any = true;
    }
  return any ? MemorySpace::host : MemorySpace::device;
}

bool copies_to_host(const Program& program, const Op& op) {
  return op.def->between_spaces && program[op.inputs[0]].space == MemorySpace::device &&
         program[op.outputs[0]].space == MemorySpace::host;
}

bool is_file_copy(const Program& program, const Op& op) {
  return op.def->between_spaces &&
         (program[op.inputs[0]].space == MemorySpace::nvme || program[op.outputs[0]].space == MemorySpace::nvme);
}

Cost local_cost(const Program& program, const Op& op) {
  return op.def->cost(op.attrs, local_types(program, op.inputs), local_types(program, op.outputs));
}

std::optional<Message> local_message(const Program& program, const Op& op) {
  if (!op.def->message) return std::nullopt;
  return op.def->message(op.attrs, local_types(program, op.inputs), local_types(program, op.outputs));
}

int rank_at_stage(const Program& program, Coordinate at, int64_t stage_rank) {
  auto axis = program.mesh.find(AxisRole::pipeline);
  BUG_IF(!axis, "{} has no pipeline axis", program.name);
  at[static_cast<size_t>(*axis)] = static_cast<int>(stage_rank);
  return rank_of(program.mesh, at);
}

StagePeer peer_of(const Program& program, const Coordinate& at, const Op& op) {
  int64_t peer = op.attrs.integer("peer"), tag = op.attrs.integer("tag");
  if (op.attrs.integer_or("to_copy", 0) == 0) return {rank_at_stage(program, at, peer), tag};
  Coordinate other = coordinate_of_data(program, 1, at);
  // Both copies send each other this value, and neither waits for the other before it has sent.
  auto axis = static_cast<size_t>(*program.mesh.copies_axis());
  const Coordinate& sender = op.outputs.empty() ? at : other;  // a recv has an output
  return {rank_at_stage(program, other, peer), tag + sender[axis]};
}

Coordinate coordinate_of_data(const Program& program, int chunk, Coordinate at) {
  std::optional<int> axis = program.mesh.copies_axis();
  if (axis && chunk > 0) at[static_cast<size_t>(*axis)] = 1 - at[static_cast<size_t>(*axis)];
  return at;
}

std::string crossed_path(std::string_view path) {
  return std::string(path) + ".crossed";
}

int first_microbatch(const Program& program, const Region& region) {
  for (const Action& action : program.schedule)
    if (action.region == region.kind && action.chunk == region.chunk) return action.microbatch;
  return 0;
}

int last_microbatch(const Program& program, const Region& region) {
  int last = 0;
  for (const Action& action : program.schedule)
    if (action.region == region.kind && action.chunk == region.chunk) last = action.microbatch;
  return last;
}

}  // namespace sextant
