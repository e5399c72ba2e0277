// Activations with a gate: rows of x are gate|up, and y = f(gate)·up. A function f is a type with
//   value(g)            f(g)
//   times_value(a, g)   a·f(g)
//   times_slope(a, g)   a·f'(g)
// where the last two multiply a from the left, so that sums of gradients do not depend on how they are written. Bodies
// return the largest magnitude that they wrote, for ops that are told to find it (amax.cuh).
#pragma once

#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

template <class F, class T, int V>
struct Gated {
  const T* x;
  T* y;
  int64_t width;

  __device__ uint32_t operator()(int64_t row, int64_t column) const {
    const T* from = x + row * 2 * width + column;
    float gate[V], up[V];
    load_floats(from, gate);
    load_floats(from + width, up);
#pragma unroll
    for (int i = 0; i < V; ++i) up[i] *= F::value(gate[i]);
    store_floats(y + row * width + column, up);
    return largest_bits(up);
  }
};

// dx may be x: a thread writes where it alone has read.
template <class F, class T, int V>
struct GatedGradient {
  const T *dy, *x;
  T* dx;
  int64_t width;

  __device__ uint32_t operator()(int64_t row, int64_t column) const {
    int64_t at = row * 2 * width + column;
    float gradient[V], gate[V], up[V];
    load_floats(dy + row * width + column, gradient);
    load_floats(x + at, gate);
    load_floats(x + at + width, up);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      float g = gate[i];
      gate[i] = F::times_slope(gradient[i] * up[i], g);
      up[i] = F::times_value(gradient[i], g);
    }
    store_floats(dx + at, gate);
    store_floats(dx + at + width, up);
    return max(largest_bits(gate), largest_bits(up));
  }
};

template <class F>
void gated_forward(const CudaCall& call) {
  const LocalShape& shape = call.out[0].shape;
  for_cuda_vectors(call.in[0].dtype, shape.last(), [&]<class T, int V>() {
    for_row_vectors<T, V>(call.stream, shape.rows(), shape.last(),
                          Gated<F, T, V>{call.in[0].as<T>(), call.out[0].as<T>(), shape.last()}, amax_of(call));
  });
}

template <class F>
void gated_backward(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  for_cuda_vectors(call.in[0].dtype, shape.last(), [&]<class T, int V>() {
    for_row_vectors<T, V>(
        call.stream, shape.rows(), shape.last(),
        GatedGradient<F, T, V>{call.in[0].as<T>(), call.in[1].as<T>(), call.out[0].as<T>(), shape.last()},
        amax_of(call));
  });
}

}  // namespace sextant::cuda
