// A tile of 128 × 128 of a matrix into fp8, and its transpose, in one pass over memory. A thread has patches of 4 rows
// and 8 columns: a row of a patch is one load of 16 bytes (of bf16) and one store of 8, and the 4 codes of a column are
// a word. Words wait in shared memory, by columns, until 16 rows of a column go out at once.
#pragma once

#include <cuda_fp8.h>

#include <cstdint>

#include "base/fp8.h"
#include "exec/cuda/kernels/vector.cuh"

namespace sextant::cuda {

constexpr int kCodeTile = 128;  // rows and columns of a tile
constexpr int kCodeThreads = 256;
constexpr int kPatchRows = 4, kPatchColumns = 8;
constexpr int kPatchesAcross = kCodeTile / kPatchColumns;                                   // threads side by side
constexpr int kPatchesOfThread = kCodeTile / kPatchRows / (kCodeThreads / kPatchesAcross);  // one below the other
constexpr int kPatchesDown = kCodeThreads / kPatchesAcross;                                 // to the next of them

using Fp8Kind = __nv_fp8_interpretation_t;

template <Fp8Kind kKind>
__device__ inline float scale_for(uint32_t amax_bits) {
  constexpr Fp8Format format = kKind == __NV_E5M2 ? kE5m2 : kE4m3;
  return fp8_scale(format, __uint_as_float(amax_bits));
}

// Four numbers as four codes, the first in the lowest byte. Rounds and saturates as fp8_bits does.
template <Fp8Kind kKind>
__device__ inline uint32_t four_codes(const float* x, const float* scale, int scale_step) {
  float2 low{x[0] * scale[0], x[1] * scale[scale_step]};
  float2 high{x[2] * scale[2 * scale_step], x[3] * scale[3 * scale_step]};
  uint32_t first = __nv_cvt_float2_to_fp8x2(low, __NV_SATFINITE, kKind);
  uint32_t second = __nv_cvt_float2_to_fp8x2(high, __NV_SATFINITE, kKind);
  return first | second << 16;
}

// Bytes [row][column] of four words become [column][row].
__device__ inline void turn_bytes(uint32_t (&w)[4]) {
  uint32_t a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);  // columns 0 and 1
  uint32_t c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);  // columns 2 and 3
  w[0] = __byte_perm(a, b, 0x5410), w[1] = __byte_perm(a, b, 0x7632);
  w[2] = __byte_perm(c, d, 0x5410), w[3] = __byte_perm(c, d, 0x7632);
}

// The codes of a tile by columns. Word (column, four rows) stands where neither a warp that writes 8 columns apart nor
// one that reads along columns meets itself in a bank.
struct TurnedTile {
  static constexpr int kWords = kCodeTile / 4;  // of a column
  alignas(16) uint32_t words[kCodeTile * kWords];

  __device__ void put(int column, int four_rows, uint32_t word) {
    int group = column / kPatchColumns;
    words[column * kWords + (((four_rows >> 2) ^ (group & 7)) << 2) + ((four_rows & 3) ^ ((group >> 3) << 1))] = word;
  }
  // The codes of a patch, its first four columns and the others; they are turned in place.
  __device__ void put_patch(int column, int four_rows, uint32_t (&left)[kPatchRows], uint32_t (&right)[kPatchRows]) {
    turn_bytes(left);
    turn_bytes(right);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      put(column + c, four_rows, left[c]);
      put(column + 4 + c, four_rows, right[c]);
    }
  }
  // The codes of 16 rows.
  __device__ uint4 get(int column, int sixteen_rows) const {
    int group = column / kPatchColumns;
    uint4 found = reinterpret_cast<const uint4*>(words)[column * (kWords / 4) + (sixteen_rows ^ (group & 7))];
    return group >> 3 ? uint4{found.z, found.w, found.x, found.y} : found;
  }
};

}  // namespace sextant::cuda
