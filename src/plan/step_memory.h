// Memory of a rank while a step runs, op by op in the order of its schedule. Each microbatch in turn begins to hold its
// activations and frees them in its backward. memory_moments counts the bytes that the arena reserves; this counts the
// bytes in use.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/program.h"
#include "plan/memory_moments.h"

namespace sextant {

// At most `most` moments, in order: of as many equal shares of the step's ops the fullest of each. Gaps between buffers
// and overhead are left out; the actions of a pair are taken one after the other.
std::vector<MemoryMoment> step_moments(const Program& program, size_t most);

// The fullest of all, without a walk over every op of every microbatch.
MemoryMoment fullest_moment(const Program& program);

}  // namespace sextant
