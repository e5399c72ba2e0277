#include <numeric>

#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/spans.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "targets/local_heads.h"

namespace sextant::cuda {

namespace {

template <class T, int V>
struct Temperature {
  const T* x;
  const int32_t* start;  // may be null
  T* y;
  int64_t length, width, queries;  // queries: elements of a row, in front
  int64_t positions;
  float strength;
  Spans spans;

  __device__ void operator()(int64_t row, int64_t column) const {
    const int64_t at = row * width + column;
    float values[V];
    load_floats(x + at, values);
    if (column < queries) {
      int64_t steps = ((start ? *start : 0) + spans.global_index(row % length) + 1) / positions;
      float factor = 1.0f + strength * log1pf(static_cast<float>(steps));
#pragma unroll
      for (int i = 0; i < V; ++i) values[i] *= factor;
    }
    store_floats(y + at, values);
  }
};

void launch(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  const int64_t width = shape[2], queries = local_heads(call.attrs, width).q_width();
  // In place, keys and values already are where they belong.
  const int64_t visited = call.in[0].data == call.out[0].data ? queries : width;
  for_cuda_vectors(call.in[0].dtype, std::gcd(queries, width), [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, shape.rows(), visited,
                       Temperature<T, V>{.x = call.in[0].as<T>(),
                                         .start = call.in.size() > 1 ? call.in[1].as<int32_t>() : nullptr,
                                         .y = call.out[0].as<T>(),
                                         .length = shape[1],
                                         .width = width,
                                         .queries = queries,
                                         .positions = call.attrs.integer("positions"),
                                         .strength = static_cast<float>(call.attrs.real("strength")),
                                         .spans = spans_of(call.in[0], 1)});
  });
}

}  // namespace

const CudaKernel attention_temperature{.launch = launch};

}  // namespace sextant::cuda
