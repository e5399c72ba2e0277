#include "base/units.h"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/slot_order.h"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

constexpr int kBiasThreads = 128;

template <class T, int V>
struct SlotBias {
  const T *x, *bias;
  const int32_t* experts;
  T* y;
  int64_t width;

  __device__ void operator()(int64_t slot, int64_t column) const {
    float values[V], added[V];
    load_floats(x + slot * width + column, values);
    load_floats(bias + experts[slot] * width + column, added);
#pragma unroll
    for (int i = 0; i < V; ++i) values[i] += added[i];
    store_floats(y + slot * width + column, values);
  }
};

// Routing weights are f32 whatever the rows are.
template <class T, int V>
struct TokenBias {
  const T *x, *bias;
  const float* weights;
  const int32_t* experts;
  T* y;
  int64_t width;
  int top_k;

  __device__ void operator()(int64_t token, int64_t column) const {
    float values[V], added[V];
    load_floats(x + token * width + column, values);
    for (int64_t slot = token * top_k; slot < (token + 1) * top_k; ++slot) {
      load_floats(bias + experts[slot] * width + column, added);
#pragma unroll
      for (int i = 0; i < V; ++i) values[i] = fmaf(weights[slot], added[i], values[i]);
    }
    store_floats(y + token * width + column, values);
  }
};

template <class T>
struct BiasGradient {
  SlotOrder order;
  const T* dy;
  const float* weights;  // null: 1
  float* dbias;
  int64_t width;
  int slots_per_row;  // of dy
};

// A thread for each column of an expert: its slots one after the other.
template <class T>
__global__ void __launch_bounds__(kBiasThreads) sum_slots(BiasGradient<T> x) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kBiasThreads + threadIdx.x;
  const int expert = static_cast<int>(blockIdx.y);
  if (column >= x.width) return;
  float sum = 0;
  for (int at = x.order.offsets[expert]; at < x.order.offsets[expert + 1]; ++at) {
    const int slot = x.order.order[at];
    const float weight = x.weights ? x.weights[slot] : 1.0f;
    sum = fmaf(weight, static_cast<float>(x.dy[static_cast<int64_t>(slot / x.slots_per_row) * x.width + column]), sum);
  }
  x.dbias[expert * x.width + column] = sum;
}

// A block for each slot.
template <class T>
__global__ void __launch_bounds__(kBiasThreads)
    weight_gradients(const T* dy, const T* bias, const int32_t* experts, float* dweights, int64_t width, int top_k) {
  const int64_t slot = blockIdx.x;
  const T *row = dy + slot / top_k * width, *own = bias + experts[slot] * width;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < width; i += kBiasThreads)
    sum = fmaf(static_cast<float>(row[i]), static_cast<float>(own[i]), sum);
  sum = block_sum<kBiasThreads>(sum);
  if (threadIdx.x == 0) dweights[slot] = sum;
}

void sum_by_expert(const CudaCall& call, const Tensor& experts, const float* weights, int slots_per_row) {
  const Tensor& dy = call.in[0];
  const int64_t count = call.attrs.integer("experts"), width = dy.shape.last();
  if (width == 0) return;
  SlotOrder order =
      sort_slots({.chosen = experts.as<const int32_t>()}, experts.count(), count, call.workspace, call.stream);
  for_cuda_type(dy.dtype, [&]<class T>() {
    BiasGradient<T> gradient{order, dy.as<const T>(), weights, call.out[0].as<float>(), width, slots_per_row};
    dim3 grid(static_cast<unsigned>(ceil_div(width, kBiasThreads)), static_cast<unsigned>(count));
    sum_slots<T><<<grid, kBiasThreads, 0, call.stream>>>(gradient);
  });
}

void run_expert_up_bias(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  for_cuda_vectors(call.in[0].dtype, shape.last(), [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, shape.rows(), shape.last(),
                       SlotBias<T, V>{call.in[0].as<T>(), call.in[1].as<T>(), call.in[2].as<int32_t>(),
                                      call.out[0].as<T>(), shape.last()});
  });
}

void run_expert_up_bias_gradient(const CudaCall& call) {
  sum_by_expert(call, call.in[1], nullptr, 1);
}

void run_expert_down_bias(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  const auto top_k = static_cast<int>(call.in[3].shape.last());
  for_cuda_vectors(call.in[0].dtype, shape.last(), [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, shape.rows(), shape.last(),
                       TokenBias<T, V>{call.in[0].as<T>(), call.in[1].as<T>(), call.in[2].as<float>(),
                                       call.in[3].as<int32_t>(), call.out[0].as<T>(), shape.last(), top_k});
  });
}

void run_expert_down_bias_gradient(const CudaCall& call) {
  const Tensor &dy = call.in[0], &experts = call.in[3];
  const auto top_k = static_cast<int>(experts.shape.last());
  sum_by_expert(call, experts, call.in[2].as<const float>(), top_k);
  if (experts.count() == 0) return;
  for_cuda_type(dy.dtype, [&]<class T>() {
    weight_gradients<T><<<static_cast<unsigned>(experts.count()), kBiasThreads, 0, call.stream>>>(
        dy.as<const T>(), call.in[1].as<const T>(), experts.as<const int32_t>(), call.out[1].as<float>(),
        dy.shape.last(), top_k);
  });
}

}  // namespace

const CudaKernel expert_up_bias{.launch = run_expert_up_bias};
const CudaKernel expert_up_bias_gradient{.launch = run_expert_up_bias_gradient};
const CudaKernel expert_down_bias{.launch = run_expert_down_bias};
const CudaKernel expert_down_bias_gradient{.launch = run_expert_down_bias_gradient};

}  // namespace sextant::cuda
