#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

constexpr int kSlotThreads = 128;

__device__ inline float silu_sigmoid(float x) {
  return __fdividef(1.0f, 1.0f + __expf(-x));
}

// The slot of a row, which has its weight: rows in the order of experts say whose they are.
struct SlotOfRow {
  const int32_t* slots;  // or null

  SlotOfRow(const CudaCall& call, size_t order)
      : slots(call.attrs.has("in_order") ? call.in[order].as<const int32_t>() : nullptr) {}
  __device__ int64_t operator()(int64_t row) const { return slots ? slots[row] : row; }
};
// Whether a row's weight is that of the expert's output, or of its input.
enum class WeightOn : uint8_t { output, input };

WeightOn weight_on(const Attrs& attrs) {
  return attrs.integer_or("on_input", 0) != 0 ? WeightOn::input : WeightOn::output;
}

// Weights are f32 whatever the rows are.
template <class T, int V>
struct Weighted {
  const T* x;
  const float* weights;
  SlotOfRow slot;
  T* y;
  int64_t width;
  WeightOn on;

  __device__ void operator()(int64_t row, int64_t column) const {
    const T* from = x + row * 2 * width + column;
    float gate[V], up[V], weight = weights[slot(row)];
    load_floats(from, gate);
    load_floats(from + width, up);
    const float inside = on == WeightOn::input ? weight : 1.0f;
#pragma unroll
    for (int i = 0; i < V; ++i) up[i] *= weight * inside * gate[i] * silu_sigmoid(inside * gate[i]);
    store_floats(y + row * width + column, up);
  }
};

template <class T>
struct WeightedGradient {
  const T *dy, *x;
  const float* weights;
  SlotOfRow slot;
  T* dx;
  float* dweights;
  int64_t width;
  WeightOn on;
};

// A block for each row. dx may be x: a thread writes where it alone has read.
template <class T, int V>
__global__ void __launch_bounds__(kSlotThreads) weighted_gradients(WeightedGradient<T> g) {
  const int64_t row = blockIdx.x, at = row * 2 * g.width, slot = g.slot(row);
  const float weight = g.weights[slot];
  // Factors: `inside` multiplies gate and up before their product, `outside` multiplies the product.
  const float inside = g.on == WeightOn::input ? weight : 1.0f, outside = g.on == WeightOn::input ? 1.0f : weight;
  float sum = 0;
  for (int64_t column = static_cast<int64_t>(threadIdx.x) * V; column < g.width; column += kSlotThreads * V) {
    float gradient[V], gate[V], up[V];
    load_floats(g.dy + row * g.width + column, gradient);
    load_floats(g.x + at + column, gate);
    load_floats(g.x + at + g.width + column, up);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      float a = inside * gate[i], s = silu_sigmoid(a), value = a * s;
      float dgate = gradient[i] * inside * up[i] * s * (1.0f + a * (1.0f - s)), dup = gradient[i] * value;
      sum += g.on == WeightOn::input ? fmaf(dgate, gate[i], dup * up[i]) : dup * up[i];
      gate[i] = inside * outside * dgate;
      up[i] = inside * outside * dup;
    }
    store_floats(g.dx + at + column, gate);
    store_floats(g.dx + at + g.width + column, up);
  }
  sum = block_sum<kSlotThreads>(sum);
  if (threadIdx.x == 0) g.dweights[slot] = sum;
}

void run_weighted_swiglu(const CudaCall& call) {
  const LocalShape& shape = call.out[0].shape;
  for_cuda_vectors(call.in[0].dtype, shape.last(), [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, shape.rows(), shape.last(),
                       Weighted<T, V>{call.in[0].as<T>(),
                                      call.in[1].as<float>(),
                                      {call, 2},
                                      call.out[0].as<T>(),
                                      shape.last(),
                                      weight_on(call.attrs)});
  });
}

void run_weighted_swiglu_backward(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  if (shape.rows() == 0) return;
  for_cuda_vectors(call.in[0].dtype, shape.last(), [&]<class T, int V>() {
    WeightedGradient<T> gradient{call.in[0].as<T>(), call.in[1].as<T>(),   call.in[2].as<float>(),
                                 {call, 3},          call.out[0].as<T>(),  call.out[1].as<float>(),
                                 shape.last(),       weight_on(call.attrs)};
    weighted_gradients<T, V><<<static_cast<unsigned>(shape.rows()), kSlotThreads, 0, call.stream>>>(gradient);
  });
}

}  // namespace

const CudaKernel weighted_swiglu{.launch = run_weighted_swiglu};
const CudaKernel weighted_swiglu_backward{.launch = run_weighted_swiglu_backward};
const CudaKernel weighted_swiglu_rows{.launch = run_weighted_swiglu};
const CudaKernel weighted_swiglu_rows_backward{.launch = run_weighted_swiglu_backward};

}  // namespace sextant::cuda
