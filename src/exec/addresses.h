// Addresses: where the values of a Program are on one rank, once its arena has a place.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/tensor.h"
#include "ir/program.h"

namespace sextant {

// An operand whose bytes are elsewhere for every microbatch.
struct SlottedOperand {
  size_t op, operand;  // of the region
  enum class Side : uint8_t { input, output } side;
  std::byte* base;
  int64_t bytes;
  int slots;

  void* at(int microbatch) const { return base + microbatch % slots * bytes; }
};

class Addresses {
 public:
  // The Program must outlive it. `host` is the arena of the host's space; null where the Program keeps nothing there.
  Addresses(const Program& program, int rank, std::byte* arena, std::byte* host = nullptr);

  const Coordinate& coordinate() const { return coordinate_; }
  // In the slot of microbatch 0. Those of values in a file have no address.
  std::vector<Tensor> tensors(const std::vector<ValueId>& ids) const;
  std::vector<SlottedOperand> slotted(const Region& region) const;
  std::byte* workspace(int32_t buffer) const;  // null for -1

  // `bytes` bytes of a value from `offset` on; BUG when they are not its own, or in a file.
  std::byte* place(const Value& value, size_t bytes, int64_t offset, int microbatch) const;
  // Of a value in the nvme space: where they are in the file.
  int64_t place_in_file(const Value& value, size_t bytes, int64_t offset) const;

 private:
  const Buffer& buffer_of(const Value& value) const;
  const Buffer& checked_buffer(const Value& value, size_t bytes, int64_t offset) const;
  std::byte* first_byte(const Buffer& buffer) const;

  const Program& program_;
  std::byte *arena_, *host_;
  Coordinate coordinate_;
  std::vector<Placement> placements_;  // by value
};

}  // namespace sextant
