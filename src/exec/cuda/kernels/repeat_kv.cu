#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/spans.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

// How the packed matrix is made of heads; rows are global ones.
struct Heads {
  int64_t queries;  // rows of q
  int64_t kv_heads, dim, copies;

  explicit Heads(const Attrs& attrs)
      : queries(attrs.integer("heads") * attrs.integer("head_dim")),
        kv_heads(attrs.integer("kv_heads")),
        dim(attrs.integer("head_dim")),
        copies(attrs.integer("copies")) {}

  // The row of kv that row `packed` behind the queries is a copy of.
  __device__ int64_t kv_row(int64_t packed) const {
    int64_t head = (packed - queries) / dim, within = (packed - queries) % dim;
    int64_t value = head >= copies ? 1 : 0;
    int64_t original = (head - value * copies) * kv_heads / copies;
    return (value * kv_heads + original) * dim + within;
  }
};

template <class T, int V>
struct Forward {
  const T *q, *kv;
  T* y;
  int64_t width;
  Heads heads;
  Spans q_rows, y_rows;

  __device__ void operator()(int64_t row, int64_t column) const {
    int64_t packed = y_rows.global_index(row);
    if (packed < 0) return;
    const T* from = packed < heads.queries ? q + q_rows.local_index(packed) * width : kv + heads.kv_row(packed) * width;
    store(y + row * width + column, load<V>(from + column));
  }
};

template <class T, int V>
struct QueryGradient {
  const T* dy;
  float* dq;
  int64_t width;
  Spans y_rows, q_rows;

  __device__ void operator()(int64_t row, int64_t column) const {
    int64_t packed = q_rows.global_index(row);
    int64_t at = packed < 0 ? -1 : y_rows.local_index(packed);
    float gradient[V] = {};
    if (at >= 0) load_floats(dy + at * width + column, gradient);
    store_floats(dq + row * width + column, gradient);
  }
};

// The sum over the copies of a row of kv that this rank has.
template <class T, int V>
struct KvGradient {
  const T* dy;
  float* dkv;
  int64_t width;
  Heads heads;
  Spans y_rows;

  __device__ void operator()(int64_t row, int64_t column) const {
    int64_t head = row / heads.dim, within = row % heads.dim;
    int64_t value = head >= heads.kv_heads ? 1 : 0, original = head - value * heads.kv_heads;
    float sum[V] = {};
    for (int64_t copy = 0; copy < heads.copies; ++copy) {
      if (copy * heads.kv_heads / heads.copies != original) continue;
      int64_t at = y_rows.local_index(heads.queries + (value * heads.copies + copy) * heads.dim + within);
      if (at < 0) continue;
      float gradient[V];
      load_floats(dy + at * width + column, gradient);
#pragma unroll
      for (int i = 0; i < V; ++i) sum[i] += gradient[i];
    }
    store_floats(dkv + row * width + column, sum);
  }
};

// Of a row: a bias has single numbers.
int64_t width_of(const Tensor& rows) {
  return rows.shape.rank() == 2 ? rows.shape[1] : 1;
}

void forward(const CudaCall& call) {
  const Tensor& y = call.out[0];
  int64_t width = width_of(y);
  for_cuda_vectors(y.dtype, width, [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, y.shape[0], width,
                       Forward<T, V>{call.in[0].as<T>(), call.in[1].as<T>(), y.as<T>(), width, Heads(call.attrs),
                                     spans_of(call.in[0], 0), spans_of(y, 0)});
  });
}

void backward(const CudaCall& call) {
  const Tensor &dy = call.in[0], &dq = call.out[0], &dkv = call.out[1];
  int64_t width = width_of(dy);
  for_cuda_vectors(dy.dtype, width, [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, dq.shape[0], width,
                       QueryGradient<T, V>{dy.as<T>(), dq.as<float>(), width, spans_of(dy, 0), spans_of(dq, 0)});
    for_row_vectors<V>(call.stream, dkv.shape[0], width,
                       KvGradient<T, V>{dy.as<T>(), dkv.as<float>(), width, Heads(call.attrs), spans_of(dy, 0)});
  });
}

}  // namespace

const CudaKernel repeat_kv{.launch = forward};
const CudaKernel repeat_kv_backward{.launch = backward};
const CudaKernel repeat_kv_bias{.launch = forward};
const CudaKernel repeat_kv_bias_backward{.launch = backward};

}  // namespace sextant::cuda
