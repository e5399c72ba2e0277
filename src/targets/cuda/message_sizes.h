// Where the packed parts of a message lie in scratch on a GPU. Whether ranks talk by NCCL or, where they share a GPU,
// through the host is not known when memory is planned: it is planned for NCCL.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace sextant::cuda {

inline int64_t padded_part(int64_t bytes) {
  return round_up(bytes, 256);
}

}  // namespace sextant::cuda
