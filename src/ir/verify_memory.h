// Proves by a dry run of the schedule that a Program computes on the bytes it means to: what an op reads is what was
// made for it, and no lane touches bytes that the other still uses. The host takes part: it writes feeds and reads
// fetches when host_access.h says so. It knows nothing of how buffers were placed or lanes joined.
#pragma once

#include <string_view>

#include "ir/program.h"

namespace sextant {

// A violation is a BUG that names the pass after which it was found.
void verify_memory(const Program& program, std::string_view after);

}  // namespace sextant
