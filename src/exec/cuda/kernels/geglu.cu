#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

constexpr float kRoot = 0.7978845608028654f;  // sqrt(2/pi)
constexpr float kCubic = 0.044715f;

// (1 + tanh(u))/2 = 1/(1 + exp(−2u)), with which GELU multiplies its argument.
__device__ float gate_of(float x) {
  float u = kRoot * x * (1.0f + kCubic * x * x);
  return __fdividef(1.0f, 1.0f + __expf(-2.0f * u));
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
    load_floats(from, gate);
    load_floats(from + width, up);
#pragma unroll
    for (int i = 0; i < V; ++i) up[i] *= gate[i] * gate_of(gate[i]);
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
    load_floats(dy + row * width + column, gradient);
    load_floats(x + at, gate);
    load_floats(x + at + width, up);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      float g = gate[i], s = gate_of(g), slope_of_u = kRoot * (1.0f + 3.0f * kCubic * g * g);
      gate[i] = gradient[i] * up[i] * (s + 2.0f * g * s * (1.0f - s) * slope_of_u);
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

const CudaKernel geglu{.launch = forward};
const CudaKernel geglu_backward{.launch = backward};

}  // namespace sextant::cuda
