#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

template <class T, int V>
struct Take {
  const T* x;
  const int32_t* at;
  T* y;
  int64_t length, width;

  __device__ void operator()(int64_t batch, int64_t column) const {
    store(y + batch * width + column, load<V>(x + (batch * length + *at) * width + column));
  }
};

void launch(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  for_cuda_vectors(call.in[0].dtype, shape[2], [&]<class T, int V>() {
    for_row_vectors<V>(
        call.stream, shape[0], shape[2],
        Take<T, V>{call.in[0].as<T>(), call.in[1].as<int32_t>(), call.out[0].as<T>(), shape[1], shape[2]});
  });
}

}  // namespace

const CudaKernel take_position{.launch = launch};

}  // namespace sextant::cuda
