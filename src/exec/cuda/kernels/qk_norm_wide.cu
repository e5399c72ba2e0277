#include <algorithm>

#include "base/units.h"
#include "exec/cuda/kernels/column_sums.h"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/spans.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "targets/cuda/row_sum_sizes.h"
#include "targets/local_heads.h"

namespace sextant::cuda {

namespace {

constexpr int kThreads = 256;

// Packed rows of this rank: `q` elements of its query heads, `k` of its key heads, then the values; and where the
// weights of their heads are.
struct WideRows {
  int64_t rows, width, q, k;
  int64_t q_width, k_width;   // of the whole model; copies of key heads count
  int64_t dim, weight_heads;  // heads of wk
  Spans held;                 // columns of the packed rows

  // Of column `local` of q or k: the row of its weight. Copies of a key head share one.
  __device__ int64_t weight(int64_t local) const {
    int64_t global = held.global_index(local);
    if (local < q) return global;
    int64_t copy = (global - q_width) / dim, within = (global - q_width) % dim;
    return copy * weight_heads / (k_width / dim) * dim + within;
  }
};

WideRows rows_of(const Attrs& attrs, const Tensor& qkv, int64_t wk_rows) {
  LocalHeads heads = local_heads(attrs, qkv.shape[2]);
  return {.rows = qkv.shape.rows(),
          .width = qkv.shape[2],
          .q = heads.q * heads.dim,
          .k = heads.kv * heads.dim,
          .q_width = attrs.integer("heads") * heads.dim,
          .k_width = attrs.integer("kv_heads") * heads.dim,
          .dim = heads.dim,
          .weight_heads = wk_rows / heads.dim,
          .held = spans_of(qkv, 2)};
}

// Σ x² of elements [begin, end) of a row, in every thread of the block.
template <class T, int V>
__device__ float square_sum(const T* row, int64_t begin, int64_t end) {
  float sum = 0;
  for (int64_t at = begin + threadIdx.x * V; at < end; at += kThreads * V) {
    float x[V];
    load_floats(row + at, x);
#pragma unroll
    for (int e = 0; e < V; ++e) sum = fmaf(x[e], x[e], sum);
  }
  return block_sum<kThreads>(sum);
}

template <class T, int V>
__global__ void __launch_bounds__(kThreads)
    mean_squares(const __grid_constant__ WideRows rows, const T* x, float* out) {
  const int64_t row = blockIdx.x;
  float q = square_sum<T, V>(x + row * rows.width, 0, rows.q);
  __syncthreads();
  float k = square_sum<T, V>(x + row * rows.width, rows.q, rows.q + rows.k);
  if (threadIdx.x != 0) return;
  out[2 * row] = q / static_cast<float>(rows.q_width);
  out[2 * row + 1] = k / static_cast<float>(rows.k_width);
}

template <class T, int V>
struct SquaresGradient {
  WideRows rows;
  const float* dsquares;
  const T* x;
  T* dx;

  __device__ void operator()(int64_t row, int64_t column) const {
    float factor = column < rows.q            ? 2.0f * dsquares[2 * row] / static_cast<float>(rows.q_width)
                   : column < rows.q + rows.k ? 2.0f * dsquares[2 * row + 1] / static_cast<float>(rows.k_width)
                                              : 0.0f;
    float values[V];
    load_floats(x + row * rows.width + column, values);
#pragma unroll
    for (int e = 0; e < V; ++e) values[e] = factor == 0.0f ? 0.0f : values[e] * factor;
    store_floats(dx + row * rows.width + column, values);
  }
};

template <class T, int V>
struct Forward {
  WideRows rows;
  const T *x, *wq, *wk;
  const float* squares;
  T* y;
  float eps;

  __device__ void operator()(int64_t row, int64_t column) const {
    float values[V];
    load_floats(x + row * rows.width + column, values);
    if (column < rows.q + rows.k) {
      bool query = column < rows.q;
      float w[V], r = 1.0f / sqrtf(squares[2 * row + (query ? 0 : 1)] + eps);
      load_floats((query ? wq : wk) + rows.weight(column), w);
#pragma unroll
      for (int e = 0; e < V; ++e) values[e] *= r * w[e];
    }
    store_floats(y + row * rows.width + column, values);
  }
};

template <class T>
struct Gradients {
  WideRows rows;
  const T *dy, *x, *wq, *wk;
  const float* squares;
  T* dx;
  float* dsquares;
  float* sums;  // [slices][rows of wq], then [slices][rows of wk]
  int64_t q_weights, k_weights, slices;
  float eps;
};

// dx of elements [begin, end) of a row; Σ dy·w·x of them, in every thread of the block.
template <class T, int V>
__device__ float write_part(const Gradients<T>& g, int64_t begin, int64_t end, const T* weights, float r) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * g.rows.width;
  float sum = 0;
  for (int64_t at = begin + threadIdx.x * V; at < end; at += kThreads * V) {
    float x[V], dy[V], w[V];
    load_floats(g.x + first + at, x);
    load_floats(g.dy + first + at, dy);
    load_floats(weights + g.rows.weight(at), w);
#pragma unroll
    for (int e = 0; e < V; ++e) {
      float through = dy[e] * w[e];
      sum = fmaf(through, x[e], sum);
      dy[e] = through * r;
    }
    store_floats(g.dx + first + at, dy);
  }
  return block_sum<kThreads>(sum);
}

template <class T, int V>
__global__ void __launch_bounds__(kThreads) row_gradients(const __grid_constant__ Gradients<T> g) {
  const int64_t row = blockIdx.x, first = row * g.rows.width;
  float rq = 1.0f / sqrtf(g.squares[2 * row] + g.eps), rk = 1.0f / sqrtf(g.squares[2 * row + 1] + g.eps);
  float q = write_part<T, V>(g, 0, g.rows.q, g.wq, rq);
  __syncthreads();
  float k = write_part<T, V>(g, g.rows.q, g.rows.q + g.rows.k, g.wk, rk);
  for (int64_t at = g.rows.q + g.rows.k + threadIdx.x * V; at < g.rows.width; at += kThreads * V)
    store(g.dx + first + at, load<V>(g.dy + first + at));
  if (threadIdx.x != 0) return;
  g.dsquares[2 * row] = -0.5f * q * rq * rq * rq;
  g.dsquares[2 * row + 1] = -0.5f * k * rk * rk * rk;
}

// Adds Σ dy·x·r over the rows of this block's slice, for the columns from `local` on.
template <class T, int V>
__device__ void add_column(const Gradients<T>& g, int64_t local, int part, float (&sum)[V]) {
  int64_t count = (g.rows.rows + g.slices - 1) / g.slices, begin = blockIdx.y * count;
  int64_t end = min(begin + count, g.rows.rows);
  for (int64_t row = begin; row < end; ++row) {
    float x[V], dy[V], r = 1.0f / sqrtf(g.squares[2 * row + part] + g.eps);
    load_floats(g.x + row * g.rows.width + local, x);
    load_floats(g.dy + row * g.rows.width + local, dy);
#pragma unroll
    for (int e = 0; e < V; ++e) sum[e] = fmaf(dy[e] * r, x[e], sum[e]);
  }
}

// A thread owns V rows of a weight in one slice of the tokens, and adds up all columns of this rank that read them.
template <class T, int V>
__global__ void __launch_bounds__(kThreads) weight_gradients(const __grid_constant__ Gradients<T> g) {
  int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * V;
  if (at >= g.q_weights + g.k_weights) return;
  const WideRows& rows = g.rows;
  float sum[V] = {};
  if (at < g.q_weights) {
    int64_t local = rows.held.local_index(at);
    if (local >= 0) add_column<T, V>(g, local, 0, sum);
    store_floats(g.sums + blockIdx.y * g.q_weights + at, sum);
    return;
  }
  at -= g.q_weights;
  int64_t copies = rows.k_width / rows.dim, head = at / rows.dim, within = at % rows.dim;
  for (int64_t copy = 0; copy < copies; ++copy) {
    if (copy * rows.weight_heads / copies != head) continue;
    int64_t local = rows.held.local_index(rows.q_width + copy * rows.dim + within);
    if (local >= 0) add_column<T, V>(g, local, 1, sum);
  }
  store_floats(g.sums + g.slices * g.q_weights + blockIdx.y * g.k_weights + at, sum);
}

void squares(const CudaCall& call) {
  const Tensor& qkv = call.in[0];
  WideRows rows = rows_of(call.attrs, qkv, 0);
  if (rows.rows == 0) return;
  for_cuda_vectors(qkv.dtype, rows.dim, [&]<class T, int V>() {
    mean_squares<T, V><<<static_cast<unsigned>(rows.rows), kThreads, 0, call.stream>>>(rows, qkv.as<const T>(),
                                                                                       call.out[0].as<float>());
  });
}

void squares_backward(const CudaCall& call) {
  const Tensor& qkv = call.in[1];
  WideRows rows = rows_of(call.attrs, qkv, 0);
  for_cuda_vectors(qkv.dtype, rows.dim, [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, rows.rows, rows.width,
                       SquaresGradient<T, V>{rows, call.in[0].as<float>(), qkv.as<T>(), call.out[0].as<T>()});
  });
}

void forward(const CudaCall& call) {
  const Tensor& qkv = call.in[0];
  WideRows rows = rows_of(call.attrs, qkv, call.in[2].shape[0]);
  for_cuda_vectors(qkv.dtype, rows.dim, [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, rows.rows, rows.width,
                       Forward<T, V>{rows, qkv.as<T>(), call.in[1].as<T>(), call.in[2].as<T>(), call.in[3].as<float>(),
                                     call.out[0].as<T>(), static_cast<float>(call.attrs.real("eps"))});
  });
}

void add_slices(const float* partials, int64_t slices, int64_t width, float* out, cudaStream_t stream) {
  add_partials({.partials = partials,
                .slices = slices,
                .width = width,
                .out = {out, nullptr},
                .write = ColumnSums::Write::over,
                .stream = stream});
}

void backward(const CudaCall& call) {
  const Tensor& qkv = call.in[1];
  int64_t q_weights = call.in[2].shape[0], k_weights = call.in[3].shape[0],
          slices = qk_norm_wide_slices(qkv.shape.rows());
  WideRows rows = rows_of(call.attrs, qkv, k_weights);
  float* sums = reinterpret_cast<float*>(call.workspace);
  for_cuda_vectors(qkv.dtype, rows.dim, [&]<class T, int V>() {
    Gradients<T> g{.rows = rows,
                   .dy = call.in[0].as<T>(),
                   .x = qkv.as<T>(),
                   .wq = call.in[2].as<T>(),
                   .wk = call.in[3].as<T>(),
                   .squares = call.in[4].as<float>(),
                   .dx = call.out[0].as<T>(),
                   .dsquares = call.out[3].as<float>(),
                   .sums = sums,
                   .q_weights = q_weights,
                   .k_weights = k_weights,
                   .slices = slices,
                   .eps = static_cast<float>(call.attrs.real("eps"))};
    if (rows.rows > 0) row_gradients<T, V><<<static_cast<unsigned>(rows.rows), kThreads, 0, call.stream>>>(g);
    dim3 grid(static_cast<unsigned>(ceil_div(q_weights + k_weights, kThreads * V)), static_cast<unsigned>(slices));
    weight_gradients<T, V><<<grid, kThreads, 0, call.stream>>>(g);
  });
  add_slices(sums, slices, q_weights, call.out[1].as<float>(), call.stream);
  add_slices(sums + slices * q_weights, slices, k_weights, call.out[2].as<float>(), call.stream);
}

}  // namespace

const CudaKernel qk_squares{.launch = squares};
const CudaKernel qk_squares_backward{.launch = squares_backward};
const CudaKernel qk_norm_wide{.launch = forward};
const CudaKernel qk_norm_wide_backward{.launch = backward};

}  // namespace sextant::cuda
