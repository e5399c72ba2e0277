// The gradient of an embedding on a GPU: places ordered by token, and the partial sums of tokens that reach over a
// chunk of places.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace sextant::cuda {

// The radix sort of kernels/token_order.cu.
constexpr int kDigitBits = 9;  // two passes order a vocabulary of 2^18
constexpr int kDigits = 1 << kDigitBits;
constexpr int kSortTile = 2048;  // keys of one block

inline int64_t sort_tiles(int64_t count) {
  return ceil_div(std::max<int64_t>(1, count), kSortTile);
}
inline int64_t token_list_bytes(int64_t count) {
  return round_up(count * int64_t{sizeof(int32_t)}, 256);
}
// Rows and places twice, and the counts. A multiple of 256.
inline int64_t token_order_workspace(int64_t count) {
  return 4 * token_list_bytes(count) + token_list_bytes(kDigits * sort_tiles(count));
}

constexpr int kEmbeddingChunk = 32;  // places whose rows a block adds up

inline int64_t embedding_chunks(int64_t count) {
  return ceil_div(count, kEmbeddingChunk);
}
// The order, then two partial sums for every chunk.
inline int64_t embedding_gradient_workspace(int64_t count, int64_t width) {
  return token_order_workspace(count) + embedding_chunks(count) * 2 * width * int64_t{sizeof(float)};
}

}  // namespace sextant::cuda
