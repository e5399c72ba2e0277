// What this GPU reaches at best, measured in a fraction of a second: a large bf16 GEMM, and a copy that no cache
// holds.
#pragma once

#include "exec/cuda/runtime/device.h"
#include "exec/executor.h"

namespace sextant {

DeviceRates measured_rates(CudaDevice& device);

}  // namespace sextant
