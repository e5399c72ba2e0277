// A GPU's probe: GEMMs through cuBLASLt in every type it has, streams by kernels of their own, sensors through NVML
// where that is there.
#pragma once

#include <memory>

#include "exec/probe.h"

namespace sextant {

// RunError when the device cannot be used.
std::unique_ptr<DeviceProbe> make_cuda_probe(int device);

}  // namespace sextant
