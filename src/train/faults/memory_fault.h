// A fault of memory, on purpose: one bit of what a rank keeps between steps is not what an op left there.
#pragma once

#include <cstdint>

#include "exec/executor.h"

namespace sextant {

// A state, and a bit of it.
struct StateBit {
  const Value* value = nullptr;
  int64_t byte = 0;
  int bit = 0;
};

// Drawn among the checked states of a Program (exec/state_checksums.h) from a number: first one of their kinds, so that
// low bits and states of any name come up as often as weights, then a value, then one of its bits.
StateBit drawn_state_bit(const Program& program, int rank, int64_t draw);

void flip_state_bit(Bound& bound, int64_t draw);

}  // namespace sextant
