// Checksums of what a rank keeps between steps: weights, the low bits of master weights, optimizer states. After the
// last op of a region that writes one of them its words are summed; before the next op that writes it they are summed
// again. Where the two sums differ, memory has changed without an op.
//
// A sum is that of the value's bytes as little-endian words of 32 bits, modulo 2^64, the last word padded with zeros:
// it does not depend on the order of its parts, and a flipped bit changes it by ±2^k.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/program.h"

namespace sextant {

// Whether a value's bytes must stay as the last op left them until the next op that writes them. Those in a file are
// read and written with checks of their own by the disk.
bool is_checked_state(const Value& value);

// The sums of an arena: the Programs that share its bytes share them.
class StateChecksums {
 public:
  // Of the value that begins there; the place stays the same. Values have no sum until one is recorded.
  size_t place_of(MemorySpace space, int64_t offset);
  std::optional<uint64_t>& at(size_t place) { return entries_[place].sum; }
  bool any() const;

 private:
  struct Entry {
    MemorySpace space;
    int64_t offset;
    std::optional<uint64_t> sum;
  };
  std::vector<Entry> entries_;
};

// The ops of a Program that write checked states.
class StateWrites {
 public:
  explicit StateWrites(const Program& program);

  // Values that op `op`, counted over all regions, is the first or the last of its region to write.
  std::span<const ValueId> first_written(size_t op) const { return first_[op]; }
  std::span<const ValueId> last_written(size_t op) const { return last_[op]; }
  const std::vector<ValueId>& checked() const { return checked_; }

 private:
  std::vector<ValueId> checked_;
  std::vector<std::vector<ValueId>> first_, last_;  // by op
};

// Throws Corruption: a value on this rank has another sum than was recorded. `layer`: -1 where it is not known.
struct ChangedState {
  const Value& value;
  uint64_t recorded, found;
  int rank;
  int layer = -1;
};
[[noreturn]] void end_by_changed_state(const ChangedState& changed, const std::string& place);

}  // namespace sextant
