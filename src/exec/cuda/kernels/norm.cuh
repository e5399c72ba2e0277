// RMS norm and layer norm, forward and backward, row by row. An RMS norm is a layer norm that takes no mean off and has
// no bias, so both are one set of kernels.
//
// Every tensor crosses memory once. Forward keeps a row in the registers of the threads that share it; there are enough
// rows to hide memory's delay. Backward has sums over all rows (dw, dbias), so a grid walks the rows and keeps the sums
// in registers: rows wait in shared memory, with the next ones on their way there (bench/cuda_kernels.cpp: forward was
// slower so, backward faster). Rows that are too wide, or do not begin on 16-byte boundaries, are read as often as
// needed instead (norm_any.cuh). column_sums adds up the sums of all blocks in the end.
#pragma once

#include <cuda_bf16.h>

#include <algorithm>

#include "base/units.h"
#include "exec/cuda/attention/async_copy.cuh"
#include "exec/cuda/kernels/amax.cuh"
#include "exec/cuda/kernels/column_sums.h"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "targets/cuda/row_sum_sizes.h"

namespace sextant::cuda {

enum class Norm : uint8_t { rms, layer };

template <class T>
struct NormRows {
  const T *x, *plus;  // with `plus`, what is normed is x + plus, and goes to `sum`; else both are null
  const T *w, *bias;  // bias: layer norm only, and may be null there too
  T *sum, *y;
  float *m, *r;  // m: layer norm only
  int64_t rows, width;
  float eps;
  float* amax;  // the largest magnitude of y; null: not asked for
};

template <class T>
struct NormGradient {
  const T *dy, *x, *w;
  const float *m, *r;  // m: layer norm only
  const T* plus;       // may be null
  T* dx;               // may be dy or plus
  float *dw, *dbias;   // partial sums, [blocks, width] each; dbias: layer norm only
  int64_t rows, width;
  float* amax;  // the largest magnitude of dx, of RMS norm only; null: not asked for
};

constexpr int kNormThreads = 128;  // of a block, unless a row takes more

constexpr int norm_block(int threads_of_row) {
  return threads_of_row > kNormThreads ? threads_of_row : kNormThreads;
}

// The shared memory that each of kNormBackwardBlocks blocks on a multiprocessor can have in backward, and the one block
// of a row that takes more threads.
constexpr int kBackwardBytes = 50 * 1024;
constexpr int kWideBytes = 144 * 1024;

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

// Forward: a row per group of threads, in their registers.
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
  uint32_t most = 0;
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (int i = lane + k * kThreads; i < vectors) {
      float w[V], bias[V] = {};
      load_floats(n.w + i * V, w);
      if constexpr (kNorm == Norm::layer)
        if (n.bias) load_floats(n.bias + i * V, bias);
      unpack(x[k], values);
#pragma unroll
      for (int e = 0; e < V; ++e) values[e] = (values[e] - mean) * r * w[e] + bias[e];
      store_floats(n.y + at + i * V, values);
      most = max(most, largest_bits(values));
    }
  if (n.amax) join_amax<T>(n.amax, most);
  if (lane != 0) return;
  n.r[row] = r;
  if constexpr (kNorm == Norm::layer) n.m[row] = mean;
}

extern __shared__ uint4 norm_row_bytes[];

// Rows of kTensors tensors in shared memory: the one at work and those that come next. Each thread copies just the
// vectors that it reads itself, so that no barrier is needed.
template <class T, int kThreads, int kVectors, int kTensors, int kMostBytes>
class RowQueue {
 public:
  static constexpr int V = kFullVector<T>, kBlock = norm_block(kThreads), kGroups = kBlock / kThreads;
  static constexpr int kStageBytes = kTensors * kVectors * kBlock * 16;
  static constexpr int kStages = std::clamp((kBlock > kNormThreads ? kWideBytes : kMostBytes) / kStageBytes, 1, 4);
  static constexpr int kBytes = kStages * kStageBytes;
  using Tensors = const T* [kTensors];

  __device__ RowQueue(const Tensors& tensors, int64_t rows, int64_t width)
      : rows_(rows), width_(width), vectors_(static_cast<int>(width / V)) {
#pragma unroll
    for (int t = 0; t < kTensors; ++t) tensors_[t] = tensors[t];
  }

  // The rows of the thread's group.
  __device__ int64_t first_row() const {
    return static_cast<int64_t>(blockIdx.x) * kGroups + threadIdx.x / kThreads;
  }
  __device__ int64_t step() const {
    return static_cast<int64_t>(gridDim.x) * kGroups;
  }

  // Calls body(row) for each of them.
  template <class Body>
  __device__ void walk(const Body& body) {
    for (int stage = 0; stage < kStages - 1; ++stage) fetch(first_row() + stage * step(), stage);
    for (int64_t row = first_row(); row < rows_; row += step()) {
      fetch(row + (kStages - 1) * step(), (stage_ + kStages - 1) % kStages);
      wait_for_copies<kStages - 1>();
      body(row);
      stage_ = (stage_ + 1) % kStages;
    }
  }

  // Whether the thread has a k-th vector, where in a row that begins, and its values in the row at work.
  __device__ bool has(int k) const {
    return index(k) < vectors_;
  }
  __device__ int column(int k) const {
    return index(k) * V;
  }
  __device__ void values(int tensor, int k, float (&x)[V]) const {
    unpack(*slot(stage_, tensor, k), x);
  }
  __device__ void put(int tensor, int k, const Packed<T, V>& x) {
    *slot(stage_, tensor, k) = x;
  }

 private:
  __device__ static int index(int k) {
    return static_cast<int>(threadIdx.x) % kThreads + k * kThreads;
  }

  __device__ static Packed<T, V>* slot(int stage, int tensor, int k) {
    auto* slots = reinterpret_cast<Packed<T, V>*>(norm_row_bytes);
    return slots + ((stage * kTensors + tensor) * kVectors + k) * kBlock + threadIdx.x;
  }

  // Closes a group of copies even where there is no row, so that the groups can be counted.
  __device__ void fetch(int64_t row, int stage) {
    if (row < rows_) {
#pragma unroll
      for (int t = 0; t < kTensors; ++t)
#pragma unroll
        for (int k = 0; k < kVectors; ++k)
          if (tensors_[t] && has(k)) copy_async(slot(stage, t, k), tensors_[t] + row * width_ + column(k));
    }
    close_copies();
  }

  const T* tensors_[kTensors];
  int64_t rows_, width_;
  int vectors_;
  int stage_ = 0;
};

template <class T, int kThreads, int kVectors>
using BackwardQueue = RowQueue<T, kThreads, kVectors, 3, kBackwardBytes>;  // dy, x, plus

// A thread's columns of w or bias, which stay with it from row to row.
template <class T, int kVectors>
struct Weights {
  static constexpr int V = kFullVector<T>;
  Packed<T, V> vectors[kVectors];

  template <class Queue>
  __device__ void load_from(const T* w, const Queue& queue) {
#pragma unroll
    for (int k = 0; k < kVectors; ++k)
      if (queue.has(k)) vectors[k] = load<V>(w + queue.column(k));
  }
};

// The sums dw and dbias of a thread's columns, over the rows that its group has walked.
template <Norm kNorm, int kVectors, int V>
struct WeightSums {
  float dw[kVectors][V] = {};
  float dbias[kNorm == Norm::layer ? kVectors : 1][V] = {};
};

// Adds a row's part to the sums, and finds the thread's part of Σ g and Σ g·n, with g = dy·w and n = (x − m)·r.
template <Norm kNorm, class T, int kVectors, class Queue>
__device__ void add_row(const Queue& queue, const Weights<T, kVectors>& w, float2 m_r,
                        WeightSums<kNorm, kVectors, Queue::V>& sums, float (&totals)[2]) {
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (queue.has(k)) {
      float dy[Queue::V], x[Queue::V], weights[Queue::V];
      queue.values(0, k, dy);
      queue.values(1, k, x);
      unpack(w.vectors[k], weights);
#pragma unroll
      for (int e = 0; e < Queue::V; ++e) {
        float normed = (x[e] - m_r.x) * m_r.y, g = dy[e] * weights[e];
        if constexpr (kNorm == Norm::layer) totals[0] += g;
        totals[1] += g * normed;
        sums.dw[k][e] += dy[e] * normed;
        if constexpr (kNorm == Norm::layer) sums.dbias[k][e] += dy[e];
      }
    }
}

// dx = r·(g − mean(g) − n·mean(g·n)) + plus. Returns the largest magnitude of the thread's part.
template <class T, int kVectors, class Queue>
__device__ uint32_t write_dx(const NormGradient<T>& n, int64_t row, const Queue& queue, const Weights<T, kVectors>& w,
                             float4 m_r_means) {
  uint32_t most = 0;
  auto [m, r, mean_g, mean_gn] = m_r_means;
  float slope = r * r * mean_gn, shift = r * mean_g;
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
    if (queue.has(k)) {
      float dy[Queue::V], x[Queue::V], weights[Queue::V], plus[Queue::V] = {};
      queue.values(0, k, dy);
      queue.values(1, k, x);
      if (n.plus) queue.values(2, k, plus);
      unpack(w.vectors[k], weights);
#pragma unroll
      for (int e = 0; e < Queue::V; ++e) x[e] = plus[e] + (r * dy[e] * weights[e] - shift - slope * (x[e] - m));
      store_floats(n.dx + row * n.width + queue.column(k), x);
      most = max(most, largest_bits(x));
    }
  return most;
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
__global__ void __launch_bounds__(norm_block(kThreads), kThreads > kNormThreads ? 1 : kNormBackwardBlocks)
    norm_gradient_kernel(const __grid_constant__ NormGradient<T> n) {
  __shared__ typename RowSums<kThreads, 2>::Scratch scratch;
  RowSums<kThreads, 2> row_sums(scratch);
  BackwardQueue<T, kThreads, kVectors> queue({n.dy, n.x, n.plus}, n.rows, n.width);
  Weights<T, kVectors> w;
  w.load_from(n.w, queue);
  WeightSums<kNorm, kVectors, kFullVector<T>> sums;
  auto statistics = [&](int64_t row) -> float2 {
    if (row >= n.rows) return {0, 0};
    return {kNorm == Norm::layer ? n.m[row] : 0.0f, n.r[row]};
  };
  float2 next = statistics(queue.first_row());
  [[maybe_unused]] uint32_t most = 0;
  queue.walk([&](int64_t row) {
    float2 m_r = next;
    next = statistics(row + queue.step());  // on its way meanwhile
    float means[2] = {0, 0};
    add_row<kNorm, T, kVectors>(queue, w, m_r, sums, means);
    row_sums(means);
    auto width = static_cast<float>(n.width);
    [[maybe_unused]] uint32_t written =
        write_dx<T, kVectors>(n, row, queue, w, {m_r.x, m_r.y, means[0] / width, means[1] / width});
    if constexpr (kNorm == Norm::rms) most = max(most, written);
  });
  if constexpr (kNorm == Norm::rms)
    if (n.amax) join_amax<T>(n.amax, most);
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
