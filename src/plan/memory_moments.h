// Memory of a rank op by op, from its Program: the lifetimes of its buffers, by purpose. The arena is allocated at the
// start; this shows how full it is, when it is fullest, and with which data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"

namespace sextant {

struct MemoryParts {
  int64_t weights = 0, gradients = 0, optimizer = 0;
  int64_t activations = 0;    // saved for backward, and passing
  int64_t scratch = 0;        // inside kernels, and gaps between buffers
  int64_t communication = 0;  // gathered weights, and messages on their way
  int64_t overhead = 0;       // outside the arena: driver, libraries, communicators

  int64_t total() const { return weights + gradients + optimizer + activations + scratch + communication + overhead; }
};

struct MemoryMoment {
  std::string path;  // of the op
  RegionKind region = RegionKind::forward;
  MemoryParts parts;
};

// One per op, over all regions in order; gaps and overhead are left out. Values of several microbatches in flight count
// with all their slots.
std::vector<MemoryMoment> memory_moments(const Program& program);

// The moment for which most room is kept, with the arena's gaps counted as scratch, so that the total is what is
// allocated.
MemoryMoment peak_moment(const Program& program, int64_t arena_bytes);

}  // namespace sextant
