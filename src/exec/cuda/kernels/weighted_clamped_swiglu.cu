#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "exec/cuda/runtime/real_type.h"

namespace sextant::cuda {

namespace {

constexpr int kPairThreads = 128;

struct Clamping {
  explicit Clamping(const Attrs& attrs)
      : limit(static_cast<float>(attrs.real("limit"))), alpha(static_cast<float>(attrs.real("alpha"))) {}
  float limit, alpha;
};

// One pair of gate and up.
struct ClampedPair {
  float alpha;
  bool gate_is_free, up_is_free;  // not cut off
  float gate, up, sigmoid;

  __device__ float value() const { return up * gate * sigmoid; }
  __device__ float by_gate() const {
    return gate_is_free ? up * sigmoid * (1.0f + alpha * gate * (1.0f - sigmoid)) : 0.0f;
  }
  __device__ float by_up() const { return up_is_free ? gate * sigmoid : 0.0f; }
};

__device__ inline ClampedPair clamped_pair(const Clamping& clamping, float gate, float up) {
  const float limit = clamping.limit, clamped = fminf(gate, limit);
  return {clamping.alpha,
          gate <= limit,
          fabsf(up) <= limit,
          clamped,
          fminf(fmaxf(up, -limit), limit) + 1.0f,
          __fdividef(1.0f, 1.0f + __expf(-clamping.alpha * clamped))};
}

// Weights are f32 whatever the rows are.
template <class T>
struct WeightedPairs {
  const T* x;
  const float* weights;
  T* y;
  int64_t width;
  Clamping clamping;

  __device__ void operator()(int64_t row, int64_t column) const {
    const T* from = x + 2 * (row * width + column);
    ClampedPair pair = clamped_pair(clamping, static_cast<float>(from[0]), static_cast<float>(from[1]));
    y[row * width + column] = static_cast<T>(weights[row] * pair.value());
  }
};

template <class T>
struct PairGradient {
  const T *dy, *x;
  const float* weights;
  T* dx;
  float* dweights;
  int64_t width;
  Clamping clamping;
};

// A block for each row. dx may be x: a thread writes where it alone has read.
template <class T>
__global__ void __launch_bounds__(kPairThreads) pair_gradients(PairGradient<T> g) {
  const int64_t row = blockIdx.x;
  const float weight = g.weights[row];
  float sum = 0;
  for (int64_t column = threadIdx.x; column < g.width; column += kPairThreads) {
    const int64_t at = row * g.width + column;
    ClampedPair pair = clamped_pair(g.clamping, static_cast<float>(g.x[2 * at]), static_cast<float>(g.x[2 * at + 1]));
    const float dy = static_cast<float>(g.dy[at]);
    sum = fmaf(dy, pair.value(), sum);
    g.dx[2 * at] = static_cast<T>(weight * dy * pair.by_gate());
    g.dx[2 * at + 1] = static_cast<T>(weight * dy * pair.by_up());
  }
  sum = block_sum<kPairThreads>(sum);
  if (threadIdx.x == 0) g.dweights[row] = sum;
}

void run_weighted_clamped_swiglu(const CudaCall& call) {
  const LocalShape& shape = call.out[0].shape;
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    for_row_vectors<1>(call.stream, shape.rows(), shape.last(),
                       WeightedPairs<T>{call.in[0].as<T>(), call.in[1].as<float>(), call.out[0].as<T>(), shape.last(),
                                        Clamping(call.attrs)});
  });
}

void run_weighted_clamped_swiglu_backward(const CudaCall& call) {
  const LocalShape& shape = call.in[0].shape;
  if (shape.rows() == 0) return;
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    PairGradient<T> gradient{call.in[0].as<T>(),      call.in[1].as<T>(), call.in[2].as<float>(), call.out[0].as<T>(),
                             call.out[1].as<float>(), shape.last(),       Clamping(call.attrs)};
    pair_gradients<T><<<static_cast<unsigned>(shape.rows()), kPairThreads, 0, call.stream>>>(gradient);
  });
}

}  // namespace

const CudaKernel weighted_clamped_swiglu{.launch = run_weighted_clamped_swiglu};
const CudaKernel weighted_clamped_swiglu_backward{.launch = run_weighted_clamped_swiglu_backward};
const CudaKernel weighted_clamped_swiglu_rows{.launch = run_weighted_clamped_swiglu};
const CudaKernel weighted_clamped_swiglu_rows_backward{.launch = run_weighted_clamped_swiglu_backward};

}  // namespace sextant::cuda
