// RMS norm and layer norm, forward and backward, row by row. An RMS norm is a layer norm that takes no mean off and has
// no bias, so both are one set of kernels.
//
// The threads that share a row keep it in registers, so that every tensor crosses memory once; rows that are too wide for
// that, or do not begin on 16-byte boundaries, are read again instead (norm_any.cuh). Sums over rows (dw, dbias) stay in
// the registers of a grid that walks all rows, and are added up in the end by column_sums.
#pragma once

#include <cuda_bf16.h>

#include <algorithm>

#include "base/units.h"
#include "exec/cuda/column_sums.h"
#include "exec/cuda/reduce.cuh"
#include "exec/cuda/vector.cuh"

namespace sextant::cuda {

enum class Norm : uint8_t { rms, layer };

template <class T>
struct NormRows {
  const T *x, *plus;  // with `plus`, what is normed is x + plus, and goes to `sum`; else both are null
  const T *w, *bias;  // bias: layer norm only
  T *sum, *y;
  float *m, *r;  // m: layer norm only
  int64_t rows, width;
  float eps;
};

template <class T>
struct NormGradient {
  const T *dy, *x, *w;
  const float *m, *r;  // m: layer norm only
  const T* plus;       // may be null
  T* dx;               // may be dy or plus
  float *dw, *dbias;   // partial sums, [blocks, width] each; dbias: layer norm only
  int64_t rows, width;
};

constexpr int kNormThreads = 128;  // of a block, unless a row takes more

constexpr int norm_block(int threads_of_row) { return threads_of_row > kNormThreads ? threads_of_row : kNormThreads; }

// Blocks that walk all rows in backward: four on each of 132 multiprocessors. By shape alone, for the sums' order.
inline int64_t norm_backward_blocks(int64_t rows) {
  constexpr int64_t kMost = 528;
  return std::clamp<int64_t>(rows, 1, kMost);
}

// Sums of N numbers over the kThreads threads of a row, in each of them. With more than a warp, every second call uses
// the other half of `scratch`, so that one barrier per call is enough.
template <int kThreads, int N>
class RowSums {
 public:
  static constexpr int kWarps = kThreads / 32;
  struct Scratch {
    float of_warp[2][N][kWarps];
  };

  __device__ explicit RowSums(Scratch& scratch) : scratch_(scratch) {}

  __device__ void operator()(float (&x)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = warp_sum(x[i]);
    if constexpr (kWarps > 1) {
      if (threadIdx.x % 32 == 0)
#pragma unroll
        for (int i = 0; i < N; ++i) scratch_.of_warp[half_][i][threadIdx.x / 32] = x[i];
      __syncthreads();
#pragma unroll
      for (int i = 0; i < N; ++i) {
        x[i] = 0;
#pragma unroll
        for (int warp = 0; warp < kWarps; ++warp) x[i] += scratch_.of_warp[half_][i][warp];
      }
      half_ ^= 1;
    }
  }

 private:
  Scratch& scratch_;
  int half_ = 0;
};

template <Norm kNorm, class T, int kThreads, int kVectors>
__global__ void __launch_bounds__(norm_block(kThreads)) norm_rows_kernel(const __grid_constant__ NormRows<T> n) {
  constexpr int V = kFullVector<T>;
  int lane = threadIdx.x % kThreads;
  int64_t row = blockIdx.x * static_cast<int64_t>(norm_block(kThreads) / kThreads) + threadIdx.x / kThreads;
  if (row >= n.rows) return;  // whole warps, or the whole block
  __shared__ typename RowSums<kThreads, 1>::Scratch scratch;
  RowSums<kThreads, 1> row_sum(scratch);
  int vectors = static_cast<int>(n.width / V);
  int64_t at = row * n.width;
  Packed<T, V> x[kVectors];
  float values[V], total[1] = {0}, mean = 0;
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (int i = lane + k * kThreads; i < vectors) x[k] = load<V>(n.x + at + i * V);
  if (n.plus) {
#pragma unroll
    for (int k = 0; k < kVectors; ++k)
      if (int i = lane + k * kThreads; i < vectors) {
        float more[V];
        load_floats(n.plus + at + i * V, more);
        unpack(x[k], values);
#pragma unroll
        for (int e = 0; e < V; ++e) values[e] += more[e];
        x[k] = pack<T>(values);  // what is normed is the sum as it is stored
        store(n.sum + at + i * V, x[k]);
      }
  }
  if constexpr (kNorm == Norm::layer) {
#pragma unroll
    for (int k = 0; k < kVectors; ++k)
      if (lane + k * kThreads < vectors) {
        unpack(x[k], values);
#pragma unroll
        for (int e = 0; e < V; ++e) total[0] += values[e];
      }
    row_sum(total);
    mean = total[0] / static_cast<float>(n.width);
    total[0] = 0;
  }
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (lane + k * kThreads < vectors) {
      unpack(x[k], values);
#pragma unroll
      for (int e = 0; e < V; ++e) total[0] += (values[e] - mean) * (values[e] - mean);
    }
  row_sum(total);
  float r = 1.0f / sqrtf(total[0] / static_cast<float>(n.width) + n.eps);
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (int i = lane + k * kThreads; i < vectors) {
      float w[V], bias[V] = {};
      load_floats(n.w + i * V, w);
      if constexpr (kNorm == Norm::layer) load_floats(n.bias + i * V, bias);
      unpack(x[k], values);
#pragma unroll
      for (int e = 0; e < V; ++e) values[e] = (values[e] - mean) * r * w[e] + bias[e];
      store_floats(n.y + at + i * V, values);
    }
  if (lane != 0) return;
  n.r[row] = r;
  if constexpr (kNorm == Norm::layer) n.m[row] = mean;
}

// The sums dw and dbias of a thread's columns, over the rows that its group has walked.
template <Norm kNorm, int kVectors, int V>
struct WeightSums {
  float dw[kVectors][V] = {};
  float dbias[kNorm == Norm::layer ? kVectors : 1][V] = {};
};

// One row's dx, and its part of the sums.
template <Norm kNorm, class T, int kThreads, int kVectors>
__device__ void norm_gradient_row(const NormGradient<T>& n, int64_t row, RowSums<kThreads, 2>& row_sums,
                                  WeightSums<kNorm, kVectors, kFullVector<T>>& sums) {
  constexpr int V = kFullVector<T>;
  int lane = threadIdx.x % kThreads, vectors = static_cast<int>(n.width / V);
  int64_t at = row * n.width;
  Packed<T, V> dys[kVectors], xs[kVectors], pluses[kVectors];
  float m = kNorm == Norm::layer ? n.m[row] : 0.0f, r = n.r[row];
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (int i = lane + k * kThreads; i < vectors) {
      dys[k] = load<V>(n.dy + at + i * V);
      xs[k] = load<V>(n.x + at + i * V);
      if (n.plus) pluses[k] = load<V>(n.plus + at + i * V);
    }
  float means[2] = {0, 0};  // of g and of g·n, with g = dy·w and n = (x − m)·r
  float dy[V], x[V], w[V];
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (int i = lane + k * kThreads; i < vectors) {
      load_floats(n.w + i * V, w);
      unpack(dys[k], dy);
      unpack(xs[k], x);
#pragma unroll
      for (int e = 0; e < V; ++e) {
        float normed = (x[e] - m) * r, g = dy[e] * w[e];
        if constexpr (kNorm == Norm::layer) means[0] += g;
        means[1] += g * normed;
        sums.dw[k][e] += dy[e] * normed;
        if constexpr (kNorm == Norm::layer) sums.dbias[k][e] += dy[e];
      }
    }
  row_sums(means);
  means[0] /= static_cast<float>(n.width);
  means[1] /= static_cast<float>(n.width);
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (int i = lane + k * kThreads; i < vectors) {
      float plus[V] = {};
      if (n.plus) unpack(pluses[k], plus);
      load_floats(n.w + i * V, w);
      unpack(dys[k], dy);
      unpack(xs[k], x);
#pragma unroll
      for (int e = 0; e < V; ++e) x[e] = plus[e] + r * (dy[e] * w[e] - means[0] - (x[e] - m) * r * means[1]);
      store_floats(n.dx + at + i * V, x);
    }
}

// A group's sums join those of the groups before it; the last group's go to the block's row of partial sums.
template <int kThreads, int kVectors, int V>
__device__ void join_groups(float (&sums)[kVectors][V], float* partial, int64_t width) {
  constexpr int kGroups = norm_block(kThreads) / kThreads;
  __shared__ float joined[kGroups > 1 ? kVectors * V * kThreads : 1];
  int lane = threadIdx.x % kThreads, group = threadIdx.x / kThreads;
  for (int turn = 0; turn < kGroups; ++turn) {
    if constexpr (kGroups > 1) __syncthreads();
    if (group != turn) continue;
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      if constexpr (kGroups > 1) {
#pragma unroll
        for (int e = 0; e < V; ++e) {
          float& slot = joined[(k * V + e) * kThreads + lane];
          if (turn > 0) sums[k][e] += slot;
          slot = sums[k][e];
        }
      }
      int64_t column = static_cast<int64_t>(lane + k * kThreads) * V;
      if (turn == kGroups - 1 && column < width) store_floats(partial + column, sums[k]);
    }
  }
}

template <Norm kNorm, class T, int kThreads, int kVectors>
__global__ void __launch_bounds__(norm_block(kThreads), kThreads > kNormThreads ? 1 : 4)
    norm_gradient_kernel(const __grid_constant__ NormGradient<T> n) {
  constexpr int kGroups = norm_block(kThreads) / kThreads;
  __shared__ typename RowSums<kThreads, 2>::Scratch scratch;
  RowSums<kThreads, 2> row_sums(scratch);
  WeightSums<kNorm, kVectors, kFullVector<T>> sums;
  int64_t step = static_cast<int64_t>(gridDim.x) * kGroups;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kGroups + threadIdx.x / kThreads; row < n.rows; row += step)
    norm_gradient_row<kNorm, T, kThreads, kVectors>(n, row, row_sums, sums);
  join_groups<kThreads>(sums.dw, n.dw + blockIdx.x * n.width, n.width);
  if constexpr (kNorm == Norm::layer) join_groups<kThreads>(sums.dbias, n.dbias + blockIdx.x * n.width, n.width);
}

// Calls body.template operator()<kThreads, kVectors>() with threads enough for a row of so many vectors, a few each.
// False when the row is too wide.
template <class Body>
bool for_row_layout(int64_t vectors, const Body& body) {
  auto with_threads = [&]<int kThreads>() {
    int64_t each = ceil_div(vectors, kThreads);
    if (each <= 1) body.template operator()<kThreads, 1>();
    if (each == 2) body.template operator()<kThreads, 2>();
    if (each == 3) body.template operator()<kThreads, 3>();
    if (each == 4) body.template operator()<kThreads, 4>();
    return each <= 4;
  };
  return with_threads.template operator()<32>() || with_threads.template operator()<128>() ||
         with_threads.template operator()<512>();
}

}  // namespace sextant::cuda
