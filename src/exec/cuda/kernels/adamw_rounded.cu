#include "base/units.h"
#include "exec/cuda/kernels/adamw_step.cuh"
#include "exec/cuda/kernels/rounding_bits.cuh"

namespace sextant::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kEach = static_cast<int>(kRoundingColumns);  // elements of a thread: those that may share random words

template <class T, class G, class S>
struct Weights {
  T* p;
  const G* g;
  S *m, *v;
  void* low;  // what lies beside a p of 16 bits; null when p is whole, or rounded
  int64_t count, columns;
  double weight_decay;
  bool rounds_weight;
};

__device__ inline void store_moment(float* to, float x, uint32_t) {
  *to = x;
}

__device__ inline void store_moment(__nv_bfloat16* to, float x, uint32_t bits) {
  store_rounded(to, x, bits);
}

template <class T, class G, class S>
__global__ void __launch_bounds__(kThreads)
    round_step(const __grid_constant__ Weights<T, G, S> weights, const __grid_constant__ RoundingPlaces places,
               AdamwInputs inputs, AdamwConstants constants) {
  __shared__ AdamwStep step;
  if (threadIdx.x == 0) step = inputs.now();
  __syncthreads();
  AdamwRule rule(step, constants, weights.weight_decay);
  if (step.scale == 0.0f) return;
  int64_t begin = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kEach;
  uint4 words{};
  RoundingPlace drawn{-1, -1};  // whose words these are
  for (int64_t at = begin; at < min(begin + kEach, weights.count); ++at) {
    RoundingPlace place = places.at(at / weights.columns, at % weights.columns);
    if (place.row != drawn.row || place.column / kRoundingColumns != drawn.column / kRoundingColumns) {
      words = places.words(*inputs.step, place);
      drawn = place;
    }
    RoundingBits bits = rounding_bits(words, place);
    Beside<T>* low = beside_at<T>(weights.low, at);
    float x[1], m = static_cast<float>(weights.m[at]), v = static_cast<float>(weights.v[at]);
    load_parameters(weights.p + at, low, x);
    rule(x[0], static_cast<float>(weights.g[at]), m, v);
    if (weights.rounds_weight)
      store_rounded(weights.p + at, x[0], bits.weight);
    else
      store_parameters(weights.p + at, low, x);
    store_moment(weights.m + at, m, bits.first_moment);
    store_moment(weights.v + at, v, bits.second_moment);
  }
}

template <class T, class G, class S>
void launch_as(const CudaCall& call) {
  const Tensor& p = call.out[0];
  Weights<T, G, S> weights{.p = p.as<T>(),
                           .g = call.in[1].as<G>(),
                           .m = call.out[1].as<S>(),
                           .v = call.out[2].as<S>(),
                           .low = call.out.size() > 3 ? call.out[3].data : nullptr,
                           .count = p.count(),
                           .columns = p.shape.rank() < 2 ? p.count() : p.shape.last(),
                           .weight_decay = call.attrs.real("weight_decay"),
                           .rounds_weight = call.attrs.integer_or("round_weight", 0) != 0};
  if (weights.count == 0) return;
  auto blocks = static_cast<unsigned>(ceil_div(weights.count, int64_t{kThreads} * kEach));
  round_step<<<blocks, kThreads, 0, call.stream>>>(weights, rounding_places(call), adamw_inputs(call),
                                                   adamw_constants(call));
}

void launch_adamw_rounded(const CudaCall& call) {
  // Gradients are f32, or as narrow as their weight.
  for_cuda_type(call.out[0].dtype, [&]<class T>() {
    auto with_moments = [&]<class S>() {
      call.in[1].dtype == DType::f32 ? launch_as<T, float, S>(call) : launch_as<T, T, S>(call);
    };
    if (call.out[1].dtype == DType::bf16)
      with_moments.template operator()<__nv_bfloat16>();
    else
      with_moments.template operator()<float>();
  });
}

}  // namespace

const CudaKernel adamw_rounded{.launch = launch_adamw_rounded};

}  // namespace sextant::cuda
