#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

constexpr int kGateThreads = 256;

__device__ inline float gate_value(float gate) {
  return 1.0f / (1.0f + expf(-gate));
}

template <class T, int V>
struct Gate {
  const T *x, *gates;
  T* y;
  int64_t width;

  __device__ void operator()(int64_t row, int64_t column) const {
    float values[V], gate = gate_value(static_cast<float>(gates[row]));
    load_floats(x + row * width + column, values);
#pragma unroll
    for (int i = 0; i < V; ++i) values[i] *= gate;
    store_floats(y + row * width + column, values);
  }
};

// A block for each row. dx may be dy: a thread writes where it alone has read.
template <class T>
__global__ void __launch_bounds__(kGateThreads)
    gate_gradients(const T* dy, const T* x, const T* gates, T* dx, T* dgates, int64_t width) {
  const int64_t row = blockIdx.x;
  float gate = gate_value(static_cast<float>(gates[row])), sum = 0;
  for (int64_t i = row * width + threadIdx.x; i < (row + 1) * width; i += kGateThreads) {
    float gradient = static_cast<float>(dy[i]);
    sum = fmaf(gradient, static_cast<float>(x[i]), sum);
    dx[i] = static_cast<T>(gate * gradient);
  }
  sum = block_sum<kGateThreads>(sum);
  if (threadIdx.x == 0) dgates[row] = static_cast<T>(gate * (1 - gate) * sum);
}

void run_row_gate(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  for_cuda_vectors(call.in[0].dtype, shape.last(), [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, shape.rows(), shape.last(),
                       Gate<T, V>{call.in[0].as<T>(), call.in[1].as<T>(), call.out[0].as<T>(), shape.last()});
  });
}

void run_row_gate_backward(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  if (shape.rows() == 0) return;
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    gate_gradients<T><<<static_cast<unsigned>(shape.rows()), kGateThreads, 0, call.stream>>>(
        call.in[0].as<T>(), call.in[1].as<T>(), call.in[2].as<T>(), call.out[0].as<T>(), call.out[1].as<T>(),
        shape.last());
  });
}

}  // namespace

const CudaKernel row_gate{.launch = run_row_gate};
const CudaKernel row_gate_backward{.launch = run_row_gate_backward};

}  // namespace sextant::cuda
