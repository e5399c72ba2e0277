#include "plan/buffer_parts.h"

#include <set>

#include "ir/op_def.h"

namespace sextant {

namespace {

// Buffers of weights that were gathered or streamed, and of everything on its way to other ranks.
std::set<int32_t> communication_buffers(const Program& program) {
  std::set<int32_t> found;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) {
      if (!op.def->message && !op.def->between_spaces) continue;
      for (ValueId id : op.outputs) {
        const Value& value = program[id];
        bool gathers = !op.inputs.empty() && program[op.inputs[0]].kind == ValueKind::parameter;
        bool receives = op.inputs.empty();
        if (value.buffer >= 0 && (gathers || receives) && !is_persistent(value.kind)) found.insert(value.buffer);
      }
    }
  return found;
}

MemoryPart part_for(BufferClass kind, bool communicates) {
  switch (kind) {
    case BufferClass::weights:
      return &MemoryParts::weights;
    case BufferClass::gradients:
      return &MemoryParts::gradients;
    case BufferClass::optimizer:
      return &MemoryParts::optimizer;
    case BufferClass::workspace:
      return &MemoryParts::scratch;
    default:
      return communicates ? &MemoryParts::communication : &MemoryParts::activations;
  }
}

}  // namespace

std::vector<MemoryPart> parts_of_buffers(const Program& program) {
  std::set<int32_t> communication = communication_buffers(program);
  std::vector<MemoryPart> parts;
  for (size_t i = 0; i < program.buffers.size(); ++i)
    parts.push_back(part_for(program.buffers[i].kind, communication.contains(static_cast<int32_t>(i))));
  return parts;
}

bool is_held_throughout(BufferClass kind) {
  return kind == BufferClass::weights || kind == BufferClass::gradients || kind == BufferClass::optimizer ||
         kind == BufferClass::cache;
}

}  // namespace sextant
