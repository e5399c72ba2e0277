#include "exec/cuda/runtime/cuda_arena.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/threads.h"
#include "base/units.h"
#include "exec/cuda/runtime/check.h"

namespace sextant {

CudaArena::CudaArena(const CudaDevice& device, int64_t bytes, int64_t host_bytes, const FileSpace& file,
                     int host_threads)
    : device_(device),
      file_(file.bytes > 0 ? std::make_unique<NvmeFile>(file) : nullptr),
      bytes_(bytes),
      host_pages_(host_bytes) {
  device.use();
  // The device first: a run that does not fit there need not wait for the host's pages.
  if (bytes > 0) allocate_on_device();
  if (host_bytes > 0) lock_host_pages(host_threads);
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

// Pages are there before they are locked: the driver would ask for them one by one, on one thread.
void CudaArena::lock_host_pages(int host_threads) {
  ThreadTeam team(host_threads);
  host_pages_.touch(team);
  cudaError_t status =
      cudaHostRegister(host_pages_.data(), static_cast<size_t>(host_pages_.bytes()), cudaHostRegisterPortable);
  if (status == cudaSuccess) return;
  if (data_) cudaFree(data_);
  throw RunError("memory",
                 fmt::format("cannot lock {} of the host's memory for what is offloaded: {}",
                             human(Bytes{host_pages_.bytes()}), cudaGetErrorString(status)),
                 "raise the limit of locked memory (ulimit -l), use a machine with more memory, or turn offload off");
}

CudaArena::~CudaArena() {
  cudaSetDevice(device_.index());
  file_.reset();
  if (host_pages_.data()) cudaHostUnregister(host_pages_.data());
  if (data_) cudaFree(data_);
}

}  // namespace sextant
