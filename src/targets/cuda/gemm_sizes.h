// The scratch of GEMMs on a GPU.
#pragma once

#include <cstdint>

namespace sextant::cuda {

// Of every GEMM: cuBLASLt is asked for algorithms that need no more.
constexpr int64_t kGemmWorkspace = int64_t{32} << 20;

// Of an operand that is narrowed in front of a GEMM; what follows begins at a multiple of 256 bytes.
constexpr int64_t narrowed_bytes(int64_t count, int64_t size) {
  return (count * size + 255) / 256 * 256;
}

}  // namespace sextant::cuda
