// Products of fp8 operands on a GPU: which sizes cuBLASLt takes, and the scratch of scales in the order in which it
// reads them. Those of tiles lie with the rows of an operand side by side, those of blocks in rows of a multiple of 4;
// ours lie along what is summed over.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "targets/cuda/gemm_sizes.h"
#include "targets/kernel_needs.h"

namespace sextant::cuda {

constexpr int64_t kFp8Unit = 16;   // every size is a multiple
constexpr int64_t kFp8Tile = 128;  // numbers that share a scale, along the sum; of blocks in both directions

// c[m n] = a[m k]·b[n k]ᵀ, from the types of its operands: a, its scales, b, its scales.
struct Fp8GemmSizes {
  int64_t m, n, k;
  int64_t sequences = 1;  // along k, where tiles end with each

  bool taken() const {
    return m % kFp8Unit == 0 && n % kFp8Unit == 0 && k % (sequences * kFp8Unit) == 0 && m > 0 && n > 0 && k > 0;
  }
  // Whether tiles of all sequences lie as those of one: then one product takes them all.
  bool in_one() const { return sequences == 1 || k / sequences % kFp8Tile == 0; }
};

inline Fp8GemmSizes fp8_gemm_sizes(const Attrs& attrs, const LocalShape& a, const LocalShape& b, const LocalShape& c) {
  int64_t n = c.last();
  bool over_tokens = c.rank() == 2;  // the gradient of a weight; a[o b s]
  return {
      .m = c.rows(), .n = n, .k = n > 0 ? b.count() / n : 0, .sequences = over_tokens && attrs.has("tile") ? a[1] : 1};
}

// Scales in the library's order.
inline int64_t tile_scale_bytes(const LocalShape& scales) {
  return round_up(scales.count() * int64_t{sizeof(float)}, 256);
}
inline int64_t block_scale_stride(const LocalShape& scales) {
  return round_up(scales.last(), 4);
}
inline int64_t block_scale_bytes(const LocalShape& scales) {
  if (block_scale_stride(scales) == scales.last()) return 0;  // they lie so already
  return round_up(scales.rows() * block_scale_stride(scales) * int64_t{sizeof(float)}, 256);
}

}  // namespace sextant::cuda
