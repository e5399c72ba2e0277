#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

// One address space: which of the two is the host's, the driver knows. It is page-locked, so that the copy runs beside
// kernels and can be captured.
void launch_space_copy(const CudaCall& call) {
  const auto bytes = static_cast<size_t>(call.out[0].count() * size_of(call.out[0].dtype));
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(call.out[0].data, call.in[0].data, bytes, cudaMemcpyDefault, call.stream), "space_copy");
}

}  // namespace

const CudaKernel space_copy{.launch = launch_space_copy};

}  // namespace sextant::cuda
