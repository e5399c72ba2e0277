#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/spans.cuh"
#include "exec/cuda/kernels/token_order.h"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

template <class T, int V>
struct Forward {
  const int32_t* tokens;
  const T* w;
  T* y;
  int64_t vocabulary, width;
  Spans held;

  __device__ void operator()(int64_t row, int64_t column) const {
    int64_t at = held.local_index(tokens[row]);
    float zeros[V] = {};
    T* to = y + row * width + column;
    if (at < 0 || at >= vocabulary)
      store_floats(to, zeros);
    else
      store(to, load<V>(w + at * width + column));
  }
};

// Backward walks the places in token order, kChunk at a time: a block adds up the rows of dy for its chunk. A token
// whose places all lie in one chunk is finished there. One that reaches into later chunks leaves its sums per chunk in
// `partials`, and a second kernel adds these in order: a frequent token is summed by many blocks.
constexpr int kChunk = kEmbeddingChunk;
constexpr int kThreads = 128;
constexpr int kAtOnce = 8;  // rows on their way

template <class T>
struct Gradient {
  const T* dy;
  TokenOrder order;
  float* dw;
  // [chunks][2][width]: the sum of the token that began before the chunk, and of the one that goes on after it.
  float* partials;
  int64_t count, width;
  int32_t absent;
  SumState before;

  __device__ bool begins_here(int64_t i) const { return i == 0 || order.rows[i - 1] != order.rows[i]; }
  __device__ bool ends_here(int64_t i) const { return i + 1 == count || order.rows[i + 1] != order.rows[i]; }
  __device__ float* head(int64_t chunk) const { return partials + chunk * 2 * width; }
  __device__ float* tail(int64_t chunk) const { return partials + (chunk * 2 + 1) * width; }

  template <int V>
  __device__ void finish(int32_t row, int64_t column, float (&sum)[V]) const {
    float* to = dw + row * width + column;
    if (before == SumState::running) {
      float old[V];
      load_floats(to, old);
#pragma unroll
      for (int e = 0; e < V; ++e) sum[e] += old[e];
    }
    store_floats(to, sum);
  }
};

template <class T, int V>
__global__ void __launch_bounds__(kThreads) sum_chunks(const __grid_constant__ Gradient<T> g) {
  int64_t chunk = blockIdx.x, begin = chunk * kChunk, end = min(g.count, begin + kChunk);
  int64_t column = (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * V;
  if (column >= g.width) return;
  float sum[V] = {};
  bool from_before = !g.begins_here(begin);
  for (int64_t first = begin; first < end; first += kAtOnce) {
    Packed<T, V> rows[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (first + k < end) rows[k] = load<V>(g.dy + g.order.places[first + k] * g.width + column);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      int64_t i = first + k;
      if (i >= end) break;
      int32_t row = g.order.rows[i];
      if (row == g.absent) return;  // and all behind it
      float values[V];
      unpack(rows[k], values);
#pragma unroll
      for (int e = 0; e < V; ++e) sum[e] += values[e];
      bool ends = g.ends_here(i);
      if (!ends && i + 1 < end) continue;
      if (from_before)
        store_floats(g.head(chunk) + column, sum);
      else if (ends)
        g.finish(row, column, sum);
      else
        store_floats(g.tail(chunk) + column, sum);
      from_before = false;
#pragma unroll
      for (int e = 0; e < V; ++e) sum[e] = 0;
    }
  }
}

// The tokens that begin in a chunk and go on after it.
template <class T, int V>
__global__ void __launch_bounds__(kThreads) join_chunks(const __grid_constant__ Gradient<T> g) {
  int64_t chunk = blockIdx.x, last = chunk * kChunk + kChunk - 1;
  int64_t column = (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * V;
  if (column >= g.width || last + 1 >= g.count || g.ends_here(last)) return;
  int32_t row = g.order.rows[last];
  bool began_before = chunk > 0 && g.order.rows[chunk * kChunk - 1] == row;
  if (row == g.absent || began_before) return;
  float sum[V];
  load_floats(g.tail(chunk) + column, sum);
#pragma unroll 4
  for (int64_t next = chunk + 1; next * kChunk < g.count && g.order.rows[next * kChunk] == row; ++next) {
    float values[V];
    load_floats(g.head(next) + column, values);
#pragma unroll
    for (int e = 0; e < V; ++e) sum[e] += values[e];
  }
  g.finish(row, column, sum);
}

void forward(const CudaCall& call) {
  const Tensor &tokens = call.in[0], &w = call.in[1];
  int64_t width = w.shape.last();
  for_cuda_vectors(w.dtype, width, [&]<class T, int V>() {
    for_row_vectors<V>(
        call.stream, tokens.count(), width,
        Forward<T, V>{tokens.as<int32_t>(), w.as<T>(), call.out[0].as<T>(), w.shape[0], width, spans_of(w, 0)});
  });
}

void backward(const CudaCall& call) {
  const Tensor &dy = call.in[0], &tokens = call.in[1], &dw = call.out[0];
  int64_t width = dw.shape.last(), count = tokens.count();
  if (!call.accumulate())
    check_cuda(cudaMemsetAsync(dw.data, 0, static_cast<size_t>(dw.count()) * sizeof(float), call.stream), "zeros");
  if (count == 0 || width == 0) return;
  TokenOrder order = order_tokens({.tokens = tokens.as<int32_t>(),
                                   .count = count,
                                   .w = dw,
                                   .workspace = call.workspace,
                                   .stream = call.stream,
                                   .without = call.attrs.integer_or("padding", -1)});
  for_cuda_vectors(dy.dtype, width, [&]<class T, int V>() {
    Gradient<T> gradient{.dy = dy.as<T>(),
                         .order = order,
                         .dw = dw.as<float>(),
                         .partials = reinterpret_cast<float*>(call.workspace + token_order_workspace(count)),
                         .count = count,
                         .width = width,
                         .absent = static_cast<int32_t>(dw.shape[0]),
                         .before = call.accumulate() ? SumState::running : SumState::fresh};
    dim3 grid(static_cast<unsigned>(embedding_chunks(count)), static_cast<unsigned>(ceil_div(width, kThreads * V)));
    sum_chunks<T, V><<<grid, kThreads, 0, call.stream>>>(gradient);
    join_chunks<T, V><<<grid, kThreads, 0, call.stream>>>(gradient);
  });
}

}  // namespace

const CudaKernel embedding{.launch = forward};
const CudaKernel embedding_backward{.launch = backward};

}  // namespace sextant::cuda
