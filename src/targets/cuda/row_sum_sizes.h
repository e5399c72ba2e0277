// Sums over rows on a GPU: into how many partial sums rows are cut. By shape alone, the same for every element type and
// alignment, so that sums are added in the same order on every device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace sextant::cuda {

// Multiprocessors of an H100: as many blocks as run at once there.
constexpr int64_t kMultiprocessors = 132;

// Columns of a matrix (the gradient of a bias).
constexpr int kColumnLanes = 32;        // threads side by side, up to 8 columns each
constexpr int kColumnBlocksAtOnce = 4;  // on one multiprocessor

inline int64_t column_slices(int64_t rows, int64_t width) {
  constexpr int64_t kBlocks = kColumnBlocksAtOnce * kMultiprocessors;  // none waits for another to end
  constexpr int64_t kLeastRows = 64;
  int64_t tiles = ceil_div(std::max<int64_t>(1, width), kColumnLanes * 8);
  return std::clamp<int64_t>(kBlocks / tiles, 1, std::max<int64_t>(1, ceil_div(rows, kLeastRows)));
}
inline int64_t column_sums_workspace(int64_t rows, int64_t width) {
  return column_slices(rows, width) * width * int64_t{sizeof(float)};
}

// The gradients of a norm's weight and bias: blocks of backward on one multiprocessor, unless a row takes more threads.
constexpr int kNormBackwardBlocks = 4;

inline int64_t norm_backward_blocks(int64_t rows) {
  return std::clamp<int64_t>(rows, 1, kNormBackwardBlocks * kMultiprocessors);
}
inline int64_t norm_gradient_workspace(int64_t sums, int64_t rows, int64_t width) {
  return sums * norm_backward_blocks(rows) * width * int64_t{sizeof(float)};
}

// The gradients of the weights that norm the heads of q and k.
inline int64_t qk_norm_backward_blocks(int64_t rows) {
  return std::clamp<int64_t>(rows, 1, 4 * kMultiprocessors);
}
inline int64_t qk_norm_gradient_workspace(int64_t rows, int64_t head_dim) {
  return 2 * qk_norm_backward_blocks(rows) * head_dim * int64_t{sizeof(float)};
}

// Of the weights that norm all of q and all of k: `weights` are the elements of both.
inline int64_t qk_norm_wide_slices(int64_t rows) {
  return std::clamp<int64_t>(rows / 64, 1, 64);
}
inline int64_t qk_norm_wide_gradient_workspace(int64_t rows, int64_t weights) {
  return qk_norm_wide_slices(rows) * weights * int64_t{sizeof(float)};
}

}  // namespace sextant::cuda
