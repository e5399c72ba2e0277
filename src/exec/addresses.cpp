#include "exec/addresses.h"

#include "base/error.h"

namespace sextant {

Addresses::Addresses(const Program& program, int rank, std::byte* arena, std::byte* host)
    : program_(program),
      arena_(arena),
      host_(host),
      coordinate_(coordinate_of(program.mesh, rank)),
      placements_(program.values.size()) {
  for (const Value& value : program.values)
    for (int dim = 0; dim < value.shape.rank(); ++dim)
      placements_[static_cast<size_t>(value.id)].dims.push_back(
          held(value.shape[dim], value.layout, dim, program.mesh, coordinate_));
}

const Buffer& Addresses::buffer_of(const Value& value) const {
  BUG_IF(value.buffer < 0, "{} has no buffer", value.path);
  return program_.buffers[static_cast<size_t>(value.buffer)];
}

std::byte* Addresses::first_byte(const Buffer& buffer) const {
  if (buffer.space == MemorySpace::nvme) return nullptr;
  std::byte* arena = buffer.space == MemorySpace::host ? host_ : arena_;
  return arena ? arena + buffer.offset : nullptr;
}

std::vector<Tensor> Addresses::tensors(const std::vector<ValueId>& ids) const {
  std::vector<Tensor> out;
  for (ValueId id : ids) {
    const Value& value = program_[id];
    out.push_back({first_byte(buffer_of(value)), value.dtype, value.local, &placements_[static_cast<size_t>(id)]});
  }
  return out;
}

std::vector<SlottedOperand> Addresses::slotted(const Region& region) const {
  std::vector<SlottedOperand> found;
  for (size_t op = 0; op < region.ops.size(); ++op) {
    auto note = [&](const std::vector<ValueId>& ids, SlottedOperand::Side side) {
      for (size_t i = 0; i < ids.size(); ++i) {
        const Buffer& buffer = buffer_of(program_[ids[i]]);
        if (buffer.slots > 1) found.push_back({op, i, side, first_byte(buffer), buffer.bytes, buffer.slots});
      }
    };
    note(region.ops[op].inputs, SlottedOperand::Side::input);
    note(region.ops[op].outputs, SlottedOperand::Side::output);
  }
  return found;
}

std::byte* Addresses::workspace(int32_t buffer) const {
  return buffer < 0 ? nullptr : first_byte(program_.buffers[static_cast<size_t>(buffer)]);
}

const Buffer& Addresses::checked_buffer(const Value& value, size_t bytes, int64_t offset) const {
  BUG_IF(offset < 0 || offset + static_cast<int64_t>(bytes) > value.local_bytes().n, "{}: {} bytes at {} of {}",
         value.path, bytes, offset, value.local_bytes().n);
  return buffer_of(value);
}

std::byte* Addresses::place(const Value& value, size_t bytes, int64_t offset, int microbatch) const {
  const Buffer& buffer = checked_buffer(value, bytes, offset);
  BUG_IF(buffer.space == MemorySpace::nvme, "{} is in a file", value.path);
  return first_byte(buffer) + microbatch % buffer.slots * buffer.bytes + offset;
}

int64_t Addresses::place_in_file(const Value& value, size_t bytes, int64_t offset) const {
  const Buffer& buffer = checked_buffer(value, bytes, offset);
  BUG_IF(buffer.space != MemorySpace::nvme, "{} is in no file", value.path);
  return buffer.offset + offset;
}

}  // namespace sextant
