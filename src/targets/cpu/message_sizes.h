// Where the parts of a message lie in scratch on a CPU.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace sextant::cpu {

// Parts are cut on whole cache lines.
inline int64_t padded_part(int64_t bytes) {
  return round_up(bytes, 64);
}

}  // namespace sextant::cpu
