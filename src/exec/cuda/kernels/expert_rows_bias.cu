#include "base/units.h"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/slot_order.h"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

constexpr int kRowBiasThreads = 128;

// Routing weights are f32 whatever the rows are; null: 1.
template <class T, int V>
struct RowBias {
  SlotExperts experts;
  const T *x, *bias;
  const float* weights;
  T* y;
  int64_t width;

  __device__ void operator()(int64_t row, int64_t column) const {
    const int expert = experts.of(row);
    float values[V], added[V];
    load_floats(x + row * width + column, values);
    if (expert >= 0) {
      const float weight = weights ? weights[row] : 1.0f;
      load_floats(bias + expert * width + column, added);
#pragma unroll
      for (int i = 0; i < V; ++i) values[i] = fmaf(weight, added[i], values[i]);
    }
    store_floats(y + row * width + column, values);
  }
};

template <class T>
struct RowBiasGradient {
  SlotOrder order;
  const T* dy;
  const float* weights;  // null: 1
  float* dbias;
  int64_t width;
  bool accumulate;
};

// A thread for each column of an expert: its rows one after the other.
template <class T>
__global__ void __launch_bounds__(kRowBiasThreads) sum_expert_rows(RowBiasGradient<T> x) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kRowBiasThreads + threadIdx.x;
  const int expert = static_cast<int>(blockIdx.y);
  if (column >= x.width) return;
  float sum = x.accumulate ? x.dbias[expert * x.width + column] : 0;
  for (int at = x.order.offsets[expert]; at < x.order.offsets[expert + 1]; ++at) {
    const int row = x.order.order[at];
    const float weight = x.weights ? x.weights[row] : 1.0f;
    sum = fmaf(weight, static_cast<float>(x.dy[static_cast<int64_t>(row) * x.width + column]), sum);
  }
  x.dbias[expert * x.width + column] = sum;
}

// A block for each row.
template <class T>
__global__ void __launch_bounds__(kRowBiasThreads)
    row_weight_gradients(SlotExperts experts, const T* dy, const T* bias, float* dweights, int64_t width) {
  const int64_t row = blockIdx.x;
  const int expert = experts.of(row);
  float sum = 0;
  for (int64_t i = threadIdx.x; expert >= 0 && i < width; i += kRowBiasThreads)
    sum = fmaf(static_cast<float>(dy[row * width + i]), static_cast<float>(bias[expert * width + i]), sum);
  sum = block_sum<kRowBiasThreads>(sum);
  if (threadIdx.x == 0) dweights[row] = sum;
}

// `bias` is this rank's, or the gradient of it.
int64_t biases_held(const CudaCall& call, const Tensor& bias) {
  return bias.count() / call.in[0].shape.last();
}

SlotExperts biases_of_rows(const CudaCall& call, const Tensor& experts, const Tensor& bias) {
  return experts_of_rows(experts.as<const int32_t>(), experts.shape.last(),
                         {.experts = call.attrs.integer("experts"),
                          .blocks = call.attrs.integer("blocks"),
                          .held = biases_held(call, bias)});
}

void add_to_rows(const CudaCall& call, const Tensor& experts, const float* weights) {
  const LocalShape& shape = call.in[0].shape;
  SlotExperts of_rows = biases_of_rows(call, experts, call.in[1]);
  for_cuda_vectors(call.in[0].dtype, shape.last(), [&]<class T, int V>() {
    for_row_vectors<V>(
        call.stream, shape.rows(), shape.last(),
        RowBias<T, V>{of_rows, call.in[0].as<T>(), call.in[1].as<T>(), weights, call.out[0].as<T>(), shape.last()});
  });
}

void sum_rows(const CudaCall& call, const Tensor& experts, const float* weights) {
  const Tensor &dy = call.in[0], &dbias = call.out[0];
  const int64_t width = dy.shape.last(), held = biases_held(call, dbias);
  SlotOrder order =
      sort_slots(biases_of_rows(call, experts, dbias), experts.count(), held, call.workspace, call.stream);
  for_cuda_type(dy.dtype, [&]<class T>() {
    RowBiasGradient<T> gradient{order, dy.as<const T>(), weights, dbias.as<float>(), width, call.accumulate()};
    dim3 grid(static_cast<unsigned>(ceil_div(width, kRowBiasThreads)), static_cast<unsigned>(held));
    sum_expert_rows<T><<<grid, kRowBiasThreads, 0, call.stream>>>(gradient);
  });
}

void run_expert_rows_bias(const CudaCall& call) {
  add_to_rows(call, call.in[2], nullptr);
}

void run_expert_rows_bias_gradient(const CudaCall& call) {
  sum_rows(call, call.in[1], nullptr);
}

void run_expert_rows_weighted_bias(const CudaCall& call) {
  add_to_rows(call, call.in[3], call.in[2].as<const float>());
}

void run_expert_rows_weighted_bias_gradient(const CudaCall& call) {
  const Tensor &dy = call.in[0], &bias = call.in[1], &experts = call.in[3];
  sum_rows(call, experts, call.in[2].as<const float>());
  if (experts.count() == 0) return;
  for_cuda_type(dy.dtype, [&]<class T>() {
    row_weight_gradients<T><<<static_cast<unsigned>(experts.count()), kRowBiasThreads, 0, call.stream>>>(
        biases_of_rows(call, experts, bias), dy.as<const T>(), bias.as<const T>(), call.out[1].as<float>(),
        dy.shape.last());
  });
}

}  // namespace

const CudaKernel expert_rows_bias{.launch = run_expert_rows_bias};
const CudaKernel expert_rows_bias_gradient{.launch = run_expert_rows_bias_gradient};
const CudaKernel expert_rows_weighted_bias{.launch = run_expert_rows_weighted_bias};
const CudaKernel expert_rows_weighted_bias_gradient{.launch = run_expert_rows_weighted_bias_gradient};

}  // namespace sextant::cuda
