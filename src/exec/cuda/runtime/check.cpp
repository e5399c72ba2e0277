#include "exec/cuda/runtime/check.h"

#include "base/error.h"

namespace sextant {

void check_cuda(cudaError_t status, std::string_view what) {
  if (status != cudaSuccess) throw RunError("cuda", fmt::format("{}: {}", what, cudaGetErrorString(status)));
}

}  // namespace sextant
