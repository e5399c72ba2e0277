#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/spans.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

template <class T, int V>
struct Forward {
  const T *x, *w;
  const int32_t* start;  // may be null
  T* y;
  int64_t length, width;
  int64_t offset;  // of the first position in w
  Spans positions;

  __device__ void operator()(int64_t row, int64_t column) const {
    int64_t at = row * width + column;
    int64_t position = positions.global_index(row % length);
    float sum[V], embedding[V];
    load_floats(x + at, sum);
    if (position >= 0) {
      position += offset + (start ? *start : 0);
      load_floats(w + position * width + column, embedding);
#pragma unroll
      for (int i = 0; i < V; ++i) sum[i] += embedding[i];
    }
    store_floats(y + at, sum);
  }
};

// One row of dw: the sum over the batch, sequence by sequence.
template <class T, int V>
struct Backward {
  const T* dy;
  float* dw;
  int64_t batch, length, width;
  int64_t offset;
  Spans positions;
  SumState before;

  __device__ void operator()(int64_t row, int64_t column) const {
    float sum[V] = {};
    float* to = dw + row * width + column;
    if (before == SumState::running) load_floats(to, sum);
    int64_t position = row < offset ? -1 : positions.local_index(row - offset);
    if (position >= 0 && position < length) {
      const T* from = dy + position * width + column;
#pragma unroll 8
      for (int64_t b = 0; b < batch; ++b) {
        float gradient[V];
        load_floats(from + b * length * width, gradient);
#pragma unroll
        for (int i = 0; i < V; ++i) sum[i] += gradient[i];
      }
    }
    store_floats(to, sum);
  }
};

void forward(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  const int32_t* start = call.in.size() > 2 ? call.in[2].as<int32_t>() : nullptr;
  for_cuda_vectors(call.in[0].dtype, shape[2], [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, shape.rows(), shape[2],
                       Forward<T, V>{call.in[0].as<T>(), call.in[1].as<T>(), start, call.out[0].as<T>(), shape[1],
                                     shape[2], call.attrs.integer_or("offset", 0), spans_of(call.in[0], 1)});
  });
}

void backward(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  SumState before = call.accumulate() ? SumState::running : SumState::fresh;
  for_cuda_vectors(call.in[0].dtype, shape[2], [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, call.out[0].shape[0], shape[2],
                       Backward<T, V>{call.in[0].as<T>(), call.out[0].as<float>(), shape[0], shape[1], shape[2],
                                      call.attrs.integer_or("offset", 0), spans_of(call.in[0], 1), before});
  });
}

}  // namespace

const CudaKernel position_embedding{.launch = forward};
const CudaKernel position_embedding_backward{.launch = backward};

}  // namespace sextant::cuda
