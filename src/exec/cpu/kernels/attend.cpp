#include "exec/cpu/kernels/attend.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

// Online-softmax state of each query's row.
template <class T>
struct Running {
  FirstKeys first_keys;
  int64_t from;  // the first key of all
  T maximum[kQueriesPerBlock];
  T sum[kQueriesPerBlock];
};

// Turns scores of one key block into weights exp(score − maximum), and scales what y holds of earlier blocks to the new
// maximum. Keys that a query may not see get weight 0.
template <class T>
void soften(const Attend<T>& block, T* scores, int64_t first_key, int64_t keys, Running<T>& running) {
  T scale = scale_of_scores(block.scale, block.dim);
  for (int64_t i = 0; i < block.queries; ++i) {
    T* row = scores + i * kKeysPerBlock;
    int64_t own = block.first + i, seen = std::clamp<int64_t>(own + 1 - first_key, 0, keys);
    int64_t hidden = std::clamp<int64_t>(running.first_keys.of(i) - first_key, 0, seen);
    std::fill(row + seen, row + keys, T(0));
    std::fill(row, row + hidden, T(0));
    if (seen == hidden) continue;
    if (block.slope != 0)
      add_alibi(row + hidden, seen - hidden, first_key + hidden, i, block.places, block.slope / scale);
    T maximum = std::max(running.maximum[i], scale * largest(row + hidden, seen - hidden));
    T rescale = std::exp(running.maximum[i] - maximum);
    running.sum[i] = running.sum[i] * rescale + exp_and_sum(row + hidden, seen - hidden, scale, maximum);
    if (first_key > running.from && rescale != 1)
      for (int64_t j = 0; j < block.value_dim; ++j) block.y[i * block.y_stride + j] *= rescale;
    running.maximum[i] = maximum;
  }
}

// Leaves out what dropout leaves out of one key block. Sums are taken before: they are those of the softmax.
template <class T>
void drop_weights(const Attend<T>& block, T* weights, int64_t first_key, int64_t keys) {
  T factors[kKeysPerBlock];
  for (int64_t i = 0; i < block.queries; ++i) {
    block.dropout.fill(i, first_key, factors, keys);
    for (int64_t j = 0; j < keys; ++j) weights[i * kKeysPerBlock + j] *= factors[j];
  }
}

}  // namespace

template <class T>
void attend(const Attend<T>& block, std::byte* scratch) {
  T* scores = reinterpret_cast<T*>(scratch);
  std::byte* gemm_scratch = scratch + kScoreBytes;
  Running<T> running;
  running.first_keys = {block.begins, block.places, block.range};
  running.from = running.first_keys.of_any(block.queries);
  std::fill_n(running.maximum, kQueriesPerBlock, -std::numeric_limits<T>::infinity());
  std::fill_n(running.sum, kQueriesPerBlock, T(0));
  int64_t all_keys = std::min(block.first + block.queries, block.keys);
  for (int64_t first_key = running.from; first_key < all_keys; first_key += kKeysPerBlock) {
    int64_t keys = std::min(kKeysPerBlock, all_keys - first_key);
    Matrix<T> k{block.k.at(first_key, 0), block.k.row_stride}, v{block.v.at(first_key, 0), block.v.row_stride};
    multiply(Gemm<T>{.m = block.queries,
                     .n = keys,
                     .k = block.dim,
                     .a = block.q,
                     .b = k.transposed(),
                     .c = scores,
                     .c_stride = kKeysPerBlock,
                     .triangle = Triangle::c_lower,
                     .diagonal = block.first - first_key},
             gemm_scratch);
    soften(block, scores, first_key, keys, running);
    if (block.dropout.mask) drop_weights(block, scores, first_key, keys);
    multiply(Gemm<T>{.m = block.queries,
                     .n = block.value_dim,
                     .k = keys,
                     .a = {scores, kKeysPerBlock},
                     .b = v,
                     .c = block.y,
                     .c_stride = block.y_stride,
                     .write = first_key == running.from ? Write::over : Write::add,
                     .triangle = Triangle::a_lower,
                     .diagonal = block.first - first_key},
             gemm_scratch);
  }
  if (running.from >= all_keys)  // all keys lie before the ranges of all queries
    for (int64_t i = 0; i < block.queries; ++i) std::fill_n(block.y + i * block.y_stride, block.value_dim, T(0));
  for (int64_t i = 0; i < block.queries; ++i) {
    T maximum = running.maximum[i], sum = running.sum[i], rescale = 1;
    if (block.sink != nullptr) {
      maximum = std::max(maximum, *block.sink);
      rescale = std::exp(running.maximum[i] - maximum);
      sum = sum * rescale + std::exp(*block.sink - maximum);
    }
    T factor = sum > 0 ? rescale / sum : 0;
    for (int64_t j = 0; j < block.value_dim; ++j) block.y[i * block.y_stride + j] *= factor;
    if (block.lse != nullptr) block.lse[i] = maximum + std::log(sum);
  }
}

template void attend(const Attend<float>&, std::byte*);
template void attend(const Attend<double>&, std::byte*);

}  // namespace sextant::cpu
