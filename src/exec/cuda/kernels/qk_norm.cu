#include <algorithm>
#include <span>

#include "base/units.h"
#include "exec/cuda/attention/own_attention.h"
#include "exec/cuda/kernels/column_sums.h"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"
#include "targets/local_heads.h"

namespace sextant::cuda {

namespace {

constexpr int kThreads = 256;

// The heads of q and k of all rows, one after the other; the values behind them are not visited.
template <class T>
struct HeadNorm {
  const T *x, *wq, *wk;  // weights are null where heads have none
  const T* dy;           // backward only
  T* y;                  // or dx
  float* sums;           // backward only: [2][blocks][dim], of dwq and dwk; null without weights
  int64_t rows, width;
  int q, heads, dim;  // heads: of q and k
  float eps;
};

// kLanes threads share a head, each with vectors lane, lane + kLanes, … of it; kVectors are enough.
template <int kLanes>
__device__ float lane_sum(float x) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffffu, x, distance);
  return x;
}

template <class T, int V, int kLanes, int kVectors>
struct Columns {
  int lane = static_cast<int>(threadIdx.x) % kLanes;

  __device__ int at(int k) const { return (lane + k * kLanes) * V; }

  // Zeros behind the head's end.
  __device__ void load_from(const T* from, int dim, float (&x)[kVectors][V]) const {
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
#pragma unroll
      for (int e = 0; e < V; ++e) x[k][e] = 0;
      if (at(k) < dim) load_floats(from + at(k), x[k]);
    }
  }

  // Ones where there is no weight.
  __device__ void load_weight(const T* weight, int dim, float (&w)[kVectors][V]) const {
    if (weight) return load_from(weight, dim, w);
#pragma unroll
    for (int k = 0; k < kVectors; ++k)
#pragma unroll
      for (int e = 0; e < V; ++e) w[k][e] = 1;
  }

  __device__ void store_to(T* to, int dim, const float (&x)[kVectors][V]) const {
#pragma unroll
    for (int k = 0; k < kVectors; ++k)
      if (at(k) < dim) store_floats(to + at(k), x[k]);
  }
};

template <int kLanes, int kVectors, int V>
__device__ float inverse_rms(const float (&x)[kVectors][V], int dim, float eps) {
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
#pragma unroll
    for (int e = 0; e < V; ++e) sum += x[k][e] * x[k][e];
  return 1.0f / sqrtf(lane_sum<kLanes>(sum) / static_cast<float>(dim) + eps);
}

template <class T, int V, int kLanes, int kVectors>
__global__ void __launch_bounds__(kThreads) norm_heads(const __grid_constant__ HeadNorm<T> n) {
  int64_t item = static_cast<int64_t>(blockIdx.x) * (kThreads / kLanes) + threadIdx.x / kLanes;
  bool exists = item < n.rows * n.heads;  // threads of a warp stay together for the sums
  int64_t row = exists ? item / n.heads : 0;
  int head = exists ? static_cast<int>(item - row * n.heads) : 0;
  int64_t at = row * n.width + static_cast<int64_t>(head) * n.dim;
  Columns<T, V, kLanes, kVectors> columns;
  float x[kVectors][V], w[kVectors][V];
  columns.load_from(n.x + at, n.dim, x);
  columns.load_weight(head < n.q ? n.wq : n.wk, n.dim, w);
  float r = inverse_rms<kLanes>(x, n.dim, n.eps);
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
#pragma unroll
    for (int e = 0; e < V; ++e) x[k][e] *= r * w[k][e];
  if (exists) columns.store_to(n.y + at, n.dim, x);
}

// The sums of a block's groups of threads, added up in their order: [2][groups][dim] floats of shared memory.
template <int kLanes, int kVectors, int V>
__device__ void write_sums(const float (&dwq)[kVectors][V], const float (&dwk)[kVectors][V], float* sums, int dim) {
  constexpr int kGroups = kThreads / kLanes;
  extern __shared__ float4 shared[];
  float* of_groups = reinterpret_cast<float*>(shared);
  int lane = static_cast<int>(threadIdx.x) % kLanes, group = static_cast<int>(threadIdx.x) / kLanes;
#pragma unroll
  for (int k = 0; k < kVectors; ++k)
#pragma unroll
    for (int e = 0; e < V; ++e)
      if (int column = (lane + k * kLanes) * V + e; column < dim) {
        of_groups[group * dim + column] = dwq[k][e];
        of_groups[(kGroups + group) * dim + column] = dwk[k][e];
      }
  __syncthreads();
  for (int i = threadIdx.x; i < 2 * dim; i += kThreads) {
    int set = i / dim, column = i - set * dim;
    float sum = 0;
    for (int g = 0; g < kGroups; ++g) sum += of_groups[(set * kGroups + g) * dim + column];
    sums[(static_cast<int64_t>(set) * gridDim.x + blockIdx.x) * dim + column] = sum;
  }
}

// dx may be dy: a thread writes where it alone has read.
template <class T, int V, int kLanes, int kVectors>
__global__ void __launch_bounds__(kThreads) head_gradients(const __grid_constant__ HeadNorm<T> n) {
  constexpr int kGroups = kThreads / kLanes;
  Columns<T, V, kLanes, kVectors> columns;
  float wq[kVectors][V], wk[kVectors][V], dwq[kVectors][V] = {}, dwk[kVectors][V] = {};
  columns.load_weight(n.wq, n.dim, wq);
  columns.load_weight(n.wk, n.dim, wk);
  const int64_t items = n.rows * n.heads, step = static_cast<int64_t>(gridDim.x) * kGroups;
  // All groups of a block make the same number of turns, so that its warps stay together.
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kGroups; first < items; first += step) {
    int64_t item = first + threadIdx.x / kLanes;
    bool exists = item < items;
    int64_t row = exists ? item / n.heads : 0;
    int head = exists ? static_cast<int>(item - row * n.heads) : 0;
    int64_t at = row * n.width + static_cast<int64_t>(head) * n.dim;
    bool query = head < n.q;
    float x[kVectors][V], dy[kVectors][V];
    columns.load_from(n.x + at, n.dim, x);
    columns.load_from(n.dy + at, n.dim, dy);
    float r = inverse_rms<kLanes>(x, n.dim, n.eps), sum = 0;
#pragma unroll
    for (int k = 0; k < kVectors; ++k)
#pragma unroll
      for (int e = 0; e < V; ++e) sum += dy[k][e] * (query ? wq[k][e] : wk[k][e]) * x[k][e];
    float projection = lane_sum<kLanes>(sum) / static_cast<float>(n.dim) * r * r;
#pragma unroll
    for (int k = 0; k < kVectors; ++k)
#pragma unroll
      for (int e = 0; e < V; ++e) {
        float part = exists ? dy[k][e] * x[k][e] * r : 0.0f;
        dwq[k][e] += query ? part : 0.0f;
        dwk[k][e] += query ? 0.0f : part;
        x[k][e] = r * (dy[k][e] * (query ? wq[k][e] : wk[k][e]) - x[k][e] * projection);
      }
    if (exists) columns.store_to(n.y + at, n.dim, x);
  }
  if (n.sums) write_sums<kLanes>(dwq, dwk, n.sums, n.dim);
}

// Calls body.template operator()<T, V, kLanes, kVectors>() with threads enough for a head.
template <class Body>
void for_head(DType dtype, int64_t dim, const Body& body) {
  if (dim > kLargestHead) refuse_head_size(dim);
  for_cuda_vectors(dtype, dim, [&]<class T, int V>() {
    constexpr int kVectors =
        static_cast<int>(kLargestHead) / (32 * V) > 0 ? static_cast<int>(kLargestHead) / (32 * V) : 1;
    if (dim <= 8 * V)
      body.template operator()<T, V, 8, 1>();
    else if (dim <= 16 * V)
      body.template operator()<T, V, 16, 1>();
    else if (dim <= 32 * V)
      body.template operator()<T, V, 32, 1>();
    else
      body.template operator()<T, V, 32, kVectors>();
  });
}

template <class T>
HeadNorm<T> head_norm(const Attrs& attrs, const Tensor& qkv, std::span<const Tensor> weights) {
  LocalHeads heads = local_heads(attrs, qkv.shape[2]);
  return {.x = qkv.as<T>(),
          .wq = weights.empty() ? nullptr : weights[0].as<T>(),
          .wk = weights.empty() ? nullptr : weights[1].as<T>(),
          .dy = nullptr,
          .y = nullptr,
          .sums = nullptr,
          .rows = qkv.shape.rows(),
          .width = qkv.shape[2],
          .q = static_cast<int>(heads.q),
          .heads = static_cast<int>(heads.q + heads.kv),
          .dim = static_cast<int>(heads.dim),
          .eps = static_cast<float>(attrs.real("eps"))};
}

// The values, which are as they were. In place they already are where they belong.
void copy_values(const Attrs& attrs, const Tensor& from, const Tensor& to, cudaStream_t stream) {
  if (from.data == to.data || from.count() == 0) return;
  LocalHeads heads = local_heads(attrs, from.shape[2]);
  auto size = static_cast<size_t>(size_of(from.dtype));
  size_t pitch = static_cast<size_t>(from.shape[2]) * size, offset = static_cast<size_t>(heads.v_at(0)) * size;
  check_cuda(cudaMemcpy2DAsync(to.as<std::byte>() + offset, pitch, from.as<std::byte>() + offset, pitch,
                               static_cast<size_t>(heads.kv * heads.dim) * size, static_cast<size_t>(from.shape.rows()),
                               cudaMemcpyDeviceToDevice, stream),
             "copying values");
}

void forward(const CudaCall& call) {
  copy_values(call.attrs, call.in[0], call.out[0], call.stream);
  for_head(call.in[0].dtype, call.attrs.integer("head_dim"), [&]<class T, int V, int kLanes, int kVectors>() {
    HeadNorm<T> n = head_norm<T>(call.attrs, call.in[0], call.in.subspan(1));
    n.y = call.out[0].as<T>();
    int64_t blocks = ceil_div(n.rows * n.heads, kThreads / kLanes);
    if (blocks > 0) norm_heads<T, V, kLanes, kVectors><<<static_cast<unsigned>(blocks), kThreads, 0, call.stream>>>(n);
  });
}

void backward(const CudaCall& call) {
  const Tensor &dy = call.in[0], &qkv = call.in[1];
  std::span<const Tensor> weights = call.in.subspan(2);
  int64_t blocks = qk_norm_backward_blocks(qkv.shape.rows()), dim = call.attrs.integer("head_dim");
  copy_values(call.attrs, dy, call.out[0], call.stream);
  for_head(qkv.dtype, dim, [&]<class T, int V, int kLanes, int kVectors>() {
    HeadNorm<T> n = head_norm<T>(call.attrs, qkv, weights);
    n.dy = dy.as<T>();
    n.y = call.out[0].as<T>();
    n.sums = weights.empty() ? nullptr : reinterpret_cast<float*>(call.workspace);
    size_t shared = 2 * static_cast<size_t>(kThreads / kLanes) * static_cast<size_t>(dim) * sizeof(float);
    head_gradients<T, V, kLanes, kVectors><<<static_cast<unsigned>(blocks), kThreads, shared, call.stream>>>(n);
  });
  if (weights.empty()) return;
  add_partials({.partials = reinterpret_cast<const float*>(call.workspace),
                .slices = blocks,
                .width = dim,
                .out = {call.out[1].as<float>(), call.out[2].as<float>()},
                .write = ColumnSums::Write::over,
                .stream = call.stream});
}

}  // namespace

const CudaKernel qk_norm{.launch = forward};
const CudaKernel qk_norm_backward{.launch = backward};

}  // namespace sextant::cuda
