#include "exec/cuda/devices.h"

#include <cuda_runtime.h>

namespace sextant {

CudaDevices cuda_devices() {
  CudaDevices found;
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) found.problem = cudaGetErrorString(status);
  for (int device = 0; device < count && status == cudaSuccess; ++device) {
    cudaDeviceProp facts{};
    status = cudaGetDeviceProperties(&facts, device);
    if (status != cudaSuccess) break;
    found.devices.push_back({facts.name, facts.major, facts.minor, static_cast<int64_t>(facts.totalGlobalMem)});
  }
  return found;
}

}  // namespace sextant
