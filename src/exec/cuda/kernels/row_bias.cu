#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "exec/cuda/runtime/real_type.h"

namespace sextant::cuda {

namespace {

// Rows may be wider than the bias: they are sums.
template <class X, class T>
struct RowBias {
  const X* x;
  const T* bias;
  X* y;
  int64_t width;

  __device__ void operator()(int64_t row, int64_t column) const {
    int64_t at = row * width + column;
    y[at] = static_cast<X>(static_cast<float>(x[at]) + static_cast<float>(bias[column]));
  }
};

void run_row_bias(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  for_cuda_type(call.in[0].dtype, [&]<class X>() {
    for_cuda_type(call.in[1].dtype, [&]<class T>() {
      for_row_vectors<1>(call.stream, shape.rows(), shape.last(),
                         RowBias<X, T>{call.in[0].as<X>(), call.in[1].as<T>(), call.out[0].as<X>(), shape.last()});
    });
  });
}

}  // namespace

const CudaKernel row_bias{.launch = run_row_bias};

}  // namespace sextant::cuda
