#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/spans.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "exec/cuda/runtime/philox.cuh"
#include "exec/dropout_mask.h"

namespace sextant::cuda {

namespace {

template <class T, int V>
struct Drop {
  const T* x;
  const uint64_t* keys;
  T* y;
  int64_t length, width;
  uint64_t site_and_head;
  uint32_t threshold;
  float factor;
  Spans positions, columns;

  __device__ float kept(uint32_t word) const { return word >= threshold ? factor : 0; }

  // Padding is not changed: its factor is 1.
  __device__ float factor_at(uint64_t key, int64_t position, int64_t column) const {
    return column < 0 ? 1 : kept(dropout_word(key, site_and_head, position, column));
  }

  __device__ void operator()(int64_t row, int64_t column) const {
    int64_t at = row * width + column, position = positions.global_index(row % length);
    uint64_t key = keys[row / length];
    float values[V];
    load_floats(x + at, values);
    int64_t first = columns.global_index(column);
    if (position < 0) {
      store_floats(y + at, values);
      return;
    }
    bool together = V % 4 == 0 && first >= 0 && first % 4 == 0 && columns.global_index(column + V - 1) == first + V - 1;
    if (together) {
#pragma unroll
      for (int i = 0; i + 3 < V; i += 4) {
        uint4 words = dropout_words(key, site_and_head, position, first + i);
        values[i] *= kept(words.x);
        values[i + 1] *= kept(words.y);
        values[i + 2] *= kept(words.z);
        values[i + 3] *= kept(words.w);
      }
    } else {
#pragma unroll
      for (int i = 0; i < V; ++i) values[i] *= factor_at(key, position, columns.global_index(column + i));
    }
    store_floats(y + at, values);
  }
};

void launch_dropout(const CudaCall& call) {
  const Tensor& x = call.in[0];
  const DropoutMask mask(call.attrs);
  for_cuda_vectors(x.dtype, x.shape[2], [&]<class T, int V>() {
    Drop<T, V> drop{.x = x.as<T>(),
                    .keys = call.in[1].as<const uint64_t>(),
                    .y = call.out[0].as<T>(),
                    .length = x.shape[1],
                    .width = x.shape[2],
                    .site_and_head = mask.site() << 32,
                    .threshold = mask.threshold(),
                    .factor = static_cast<float>(mask.factor()),
                    .positions = spans_of(x, 1),
                    .columns = spans_of(x, 2)};
    for_row_vectors<V>(call.stream, x.shape.rows(), x.shape[2], drop);
  });
}

}  // namespace

const CudaKernel dropout{.launch = launch_dropout};

}  // namespace sextant::cuda
