#include "exec/cuda/runtime/cuda_arena.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "base/units.h"
#include "exec/cuda/runtime/check.h"

namespace sextant {

CudaArena::CudaArena(const CudaDevice& device, int64_t bytes, int64_t host_bytes, const FileSpace& file)
    : device_(device),
      file_(file.bytes > 0 ? std::make_unique<NvmeFile>(file) : nullptr),
      bytes_(bytes),
      host_bytes_(host_bytes) {
  device.use();
  if (host_bytes > 0) allocate_host();
  if (bytes == 0) return;
  void* at = nullptr;
  cudaError_t status = cudaMalloc(&at, static_cast<size_t>(bytes));
  if (status != cudaSuccess) {
    if (host_data_) cudaFreeHost(host_data_);
    throw RunError("memory",
                   fmt::format("cannot allocate {} for the arena on {}: {}", human(Bytes{bytes}), device.name(),
                               cudaGetErrorString(status)),
                   "use a smaller batch.microbatch or batch.seq, or train.recompute = \"full\"");
  }
  data_ = static_cast<std::byte*>(at);
  check_cuda(cudaMemsetAsync(data_, 0, static_cast<size_t>(bytes), device.stream()), "clearing the arena");
}

void CudaArena::allocate_host() {
  void* at = nullptr;
  cudaError_t status = cudaHostAlloc(&at, static_cast<size_t>(host_bytes_), cudaHostAllocPortable);
  if (status != cudaSuccess)
    throw RunError("memory",
                   fmt::format("cannot lock {} of the host's memory for what is offloaded: {}",
                               human(Bytes{host_bytes_}), cudaGetErrorString(status)),
                   "raise the limit of locked memory (ulimit -l), use a machine with more memory, or turn offload off");
  host_data_ = static_cast<std::byte*>(at);
  std::memset(host_data_, 0, static_cast<size_t>(host_bytes_));
}

CudaArena::~CudaArena() {
  cudaSetDevice(device_.index());
  file_.reset();
  if (host_data_) cudaFreeHost(host_data_);
  if (data_) cudaFree(data_);
}

}  // namespace sextant
