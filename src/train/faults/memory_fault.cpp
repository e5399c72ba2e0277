#include "train/faults/memory_fault.h"

#include <map>

#include "base/error.h"
#include "base/rng.h"
#include "exec/state_checksums.h"

namespace sextant {

StateBit drawn_state_bit(const Program& program, int rank, int64_t draw) {
  std::map<std::pair<ValueKind, DType>, std::vector<const Value*>> kinds;
  for (const Value& value : program.values)
    if (is_checked_state(value)) kinds[{value.kind, value.dtype}].push_back(&value);
  BUG_IF(kinds.empty(), "{} keeps nothing between steps", program.name);
  Random random(static_cast<uint64_t>(draw), "flip_memory", static_cast<uint64_t>(rank));
  const std::vector<const Value*>& values =
      std::next(kinds.begin(), static_cast<int>(random.below(0, kinds.size())))->second;
  const Value* value = values[random.below(1, values.size())];
  return {.value = value,
          .byte = static_cast<int64_t>(random.below(2, static_cast<uint64_t>(value->local_bytes().n))),
          .bit = static_cast<int>(random.below(3, 8))};
}

void flip_state_bit(Bound& bound, int64_t draw) {
  StateBit place = drawn_state_bit(bound.program(), bound.rank(), draw);
  std::byte byte{};
  bound.read(*place.value, std::span(&byte, 1), place.byte);
  byte ^= std::byte{1} << place.bit;
  bound.write(*place.value, std::span(&byte, 1), place.byte);
}

}  // namespace sextant
