#include <cuda_runtime.h>

#include "exec/cuda/runtime/devices.h"

namespace sextant {

namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// The runtime calls a missing driver "insufficient"; a person wants to know which of the two it is.
std::string problem_of(cudaError_t status) {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (driver == 0) return "there is no NVIDIA driver";
  if (status == cudaErrorInsufficientDriver)
    return "the NVIDIA driver goes up to CUDA " + version_text(driver) + ", and this program needs " +
           version_text(runtime);
  return cudaGetErrorString(status);
}

}  // namespace

CudaDevices cuda_devices() {
  CudaDevices found;
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  for (int device = 0; device < count && status == cudaSuccess; ++device) {
    cudaDeviceProp facts{};
    status = cudaGetDeviceProperties(&facts, device);
    if (status != cudaSuccess) break;
    found.devices.push_back({facts.name, facts.major, facts.minor, static_cast<int64_t>(facts.totalGlobalMem)});
  }
  if (found.devices.empty()) found.problem = status == cudaSuccess ? "the driver sees none" : problem_of(status);
  return found;
}

}  // namespace sextant
