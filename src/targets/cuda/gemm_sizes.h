// The scratch of GEMMs on a GPU.
#pragma once

#include <cstdint>

namespace sextant::cuda {

// Of every GEMM: cuBLASLt is asked for algorithms that need no more.
constexpr int64_t kGemmWorkspace = int64_t{32} << 20;

}  // namespace sextant::cuda
