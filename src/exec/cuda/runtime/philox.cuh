// base/rng.cpp and exec/dropout_mask.h, on the device: the same bits.
#pragma once

#include <cstdint>

namespace sextant::cuda {

__device__ inline uint4 philox(uint64_t key, uint64_t counter_high, uint64_t counter_low) {
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint4 c{static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
          static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
#pragma unroll 2  // attention has a copy for each of its scores
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53} * c.x, b = uint64_t{0xCD9E8D57} * c.z;
    c = {static_cast<uint32_t>(b >> 32) ^ c.y ^ k0, static_cast<uint32_t>(b), static_cast<uint32_t>(a >> 32) ^ c.w ^ k1,
         static_cast<uint32_t>(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

// The words of columns 4·(column / 4) … of a row: those that dropout compares with its threshold.
__device__ inline uint4 dropout_words(uint64_t key, uint64_t site_and_head, int64_t row, int64_t column) {
  return philox(key, site_and_head, static_cast<uint64_t>(row) << 32 | static_cast<uint64_t>(column / 4));
}

__device__ inline uint32_t dropout_word(uint64_t key, uint64_t site_and_head, int64_t row, int64_t column) {
  uint4 words = dropout_words(key, site_and_head, row, column);
  int at = static_cast<int>(column % 4);
  return at < 2 ? (at == 0 ? words.x : words.y) : (at == 2 ? words.z : words.w);
}

}  // namespace sextant::cuda
