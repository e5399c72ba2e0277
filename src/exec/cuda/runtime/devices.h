// The NVIDIA GPUs of this machine, as the driver tells them. Empty, with the driver's reason, when there are none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sextant {

struct CudaDeviceFacts {
  std::string name;          // "NVIDIA H200"
  int major = 0, minor = 0;  // compute capability
  int64_t memory_bytes = 0;
};

struct CudaDevices {
  std::vector<CudaDeviceFacts> devices;
  std::string problem;  // why there are none, in the driver's words
};

CudaDevices cuda_devices();

}  // namespace sextant
