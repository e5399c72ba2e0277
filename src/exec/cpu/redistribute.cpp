#include "exec/cpu/kernel.h"

namespace sextant::cpu {

// Moving data between ranks is the communicator's work, not a kernel's.
const CpuKernel redistribute{};

}  // namespace sextant::cpu
