#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

__device__ float sigmoid(float x) {
  return __fdividef(1.0f, 1.0f + __expf(-x));
}

// Rows of x are gate|up, `width` elements each.
template <class T, int V>
struct Forward {
  const T* x;
  T* y;
  int64_t width;

  __device__ void operator()(int64_t row, int64_t column) const {
    const T* from = x + row * 2 * width + column;
    float gate[V], up[V];
    Packed<T, V> gates = load<V>(from), ups = load<V>(from + width);
    unpack(gates, gate);
    unpack(ups, up);
#pragma unroll
    for (int i = 0; i < V; ++i) up[i] *= gate[i] * sigmoid(gate[i]);
    store_floats(y + row * width + column, up);
  }
};

// dx may be x: a thread writes where it alone has read.
template <class T, int V>
struct Backward {
  const T *dy, *x;
  T* dx;
  int64_t width;

  __device__ void operator()(int64_t row, int64_t column) const {
    int64_t at = row * 2 * width + column;
    float gradient[V], gate[V], up[V];
    Packed<T, V> gradients = load<V>(dy + row * width + column), gates = load<V>(x + at), ups = load<V>(x + at + width);
    unpack(gradients, gradient);
    unpack(gates, gate);
    unpack(ups, up);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      float g = gate[i], s = sigmoid(g);
      gate[i] = gradient[i] * up[i] * s * (1.0f + g * (1.0f - s));
      up[i] = gradient[i] * g * s;
    }
    store_floats(dx + at, gate);
    store_floats(dx + at + width, up);
  }
};

void forward(const CudaCall& call) {
  const LocalShape& shape = call.out[0].shape;
  for_cuda_vectors(call.in[0].dtype, shape.last(), [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, shape.rows(), shape.last(),
                       Forward<T, V>{call.in[0].as<T>(), call.out[0].as<T>(), shape.last()});
  });
}

void backward(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  for_cuda_vectors(call.in[0].dtype, shape.last(), [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, shape.rows(), shape.last(),
                       Backward<T, V>{call.in[0].as<T>(), call.in[1].as<T>(), call.out[0].as<T>(), shape.last()});
  });
}

}  // namespace

const CudaKernel swiglu{.launch = forward};
const CudaKernel swiglu_backward{.launch = backward};

}  // namespace sextant::cuda
