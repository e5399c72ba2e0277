// The scratch of GEMMs: operands are packed into panels. The panels' size depends on the vector instructions
// of the machine that computes; scratch is planned for the largest of any, so that a plan made on one machine holds on
// another (exec/cpu/kernels/gemm_kernel.cpp checks each against these).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace sextant::cpu {

// Rows of a that one thread packs, columns of b that are packed for all.
constexpr int64_t kGemmRows = 256, kGemmColumns = 4096;
// Of a register tile, and of k at once, on any machine.
constexpr int64_t kMostTileRows = 8, kMostTileColumns = 48, kMostDepth = 384;

inline int64_t packed_a_bytes(int64_t k) {
  return round_up(kGemmRows + kMostTileRows, 16) * std::min(k, kMostDepth) * int64_t{sizeof(float)};
}
inline int64_t packed_b_bytes(int64_t n, int64_t k) {
  return round_up(std::min(n, kGemmColumns) + kMostTileColumns, 16) * std::min(k, kMostDepth) * int64_t{sizeof(float)};
}

// c = a·b with b of k×n: inside one task, and by a team.
inline int64_t multiply_scratch(int64_t n, int64_t k) {
  return packed_a_bytes(k) + packed_b_bytes(n, k);
}
inline int64_t multiply_workspace(int64_t n, int64_t k, int threads) {
  return threads * packed_a_bytes(k) + packed_b_bytes(n, k);
}

}  // namespace sextant::cpu
