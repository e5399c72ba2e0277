// Peak rates of this GPU, measured in a fraction of a second: a large bf16 GEMM, and a copy that is too large for the
// caches.
#pragma once

#include "exec/cuda/runtime/device.h"
#include "exec/executor.h"

namespace sextant {

DeviceRates measured_rates(CudaDevice& device);

}  // namespace sextant
