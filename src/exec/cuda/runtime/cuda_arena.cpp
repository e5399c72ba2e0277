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
  // The device first: locking much of the host's memory takes a minute, which a run that does not fit need not wait
  // for.
  if (bytes > 0) allocate_on_device();
  if (host_bytes > 0) allocate_host();
}

void CudaArena::allocate_on_device() {
  void* at = nullptr;
  cudaError_t status = cudaMalloc(&at, static_cast<size_t>(bytes_));
  if (status != cudaSuccess) {
    size_t free = 0, all = 0;
    cudaMemGetInfo(&free, &all);
    throw RunError("memory",
                   fmt::format("cannot allocate {} for the arena on {}, where {} of {} are free: {}",
                               human(Bytes{bytes_}), device_.name(), human(Bytes{static_cast<int64_t>(free)}),
                               human(Bytes{static_cast<int64_t>(all)}), cudaGetErrorString(status)),
                   "use a smaller batch.microbatch or batch.seq, or train.recompute = \"full\"");
  }
  data_ = static_cast<std::byte*>(at);
  check_cuda(cudaMemsetAsync(data_, 0, static_cast<size_t>(bytes_), device_.stream()), "clearing the arena");
}

void CudaArena::allocate_host() {
  void* at = nullptr;
  cudaError_t status = cudaHostAlloc(&at, static_cast<size_t>(host_bytes_), cudaHostAllocPortable);
  if (status != cudaSuccess) {
    if (data_) cudaFree(data_);
    throw RunError("memory",
                   fmt::format("cannot lock {} of the host's memory for what is offloaded: {}",
                               human(Bytes{host_bytes_}), cudaGetErrorString(status)),
                   "raise the limit of locked memory (ulimit -l), use a machine with more memory, or turn offload off");
  }
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
