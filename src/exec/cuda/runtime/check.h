// CUDA's answers turned into errors: what was asked, and what the driver said.
#pragma once

#include <cuda_runtime.h>

#include <string_view>

namespace sextant {

void check_cuda(cudaError_t status, std::string_view what);  // RunError unless it is a success

}  // namespace sextant
