// A warp has one block of a row at a time: it holds the block's means in registers between the old codes and the new.
#include "base/dynamic_map.h"
#include "base/units.h"
#include "exec/cuda/kernels/adamw_step.cuh"
#include "exec/cuda/kernels/rounding_bits.cuh"

namespace sextant::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr int64_t kLargestBlock = 256;
constexpr int kEach = static_cast<int>(kLargestBlock) / kWarp;  // elements of a lane

__constant__ DynamicMap signed_map = kSignedMap;
__constant__ DynamicMap positive_map = kPositiveMap;

template <class T, class G>
struct Weights {
  T* p;
  const G* g;
  uint8_t *m, *v;
  float *m_absmax, *v_absmax;
  void* low;                             // what lies beside a p of 16 bits; null when p is whole, or rounded
  int64_t rows, columns, block, blocks;  // `blocks` in a row
  double weight_decay;
  bool rounds_weight;
};

// A NaN stays.
__device__ inline float larger(float so_far, float x) {
  return x <= so_far || isnan(so_far) ? so_far : x;
}

__device__ inline float largest_of_warp(float x) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) x = larger(x, __shfl_xor_sync(0xffffffffu, x, distance));
  return x;
}

// Updates the elements of block `index` that one lane holds. The block begins at element `first`.
template <class T, class G>
__device__ void step_block(const Weights<T, G>& weights, const RoundingPlaces& places, const AdamwRule& rule,
                           int32_t step, const float* signs, const float* squares, int64_t index) {
  int lane = static_cast<int>(threadIdx.x) % kWarp;
  int64_t row = index / weights.blocks, column = index % weights.blocks * weights.block;
  int n = static_cast<int>(min(weights.block, weights.columns - column));
  int64_t first = row * weights.columns + column;
  float m_absmax = weights.m_absmax[index], v_absmax = weights.v_absmax[index];
  float m[kEach], v[kEach], largest_m = 0, largest_v = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    int i = lane + k * kWarp;
    m[k] = v[k] = 0;
    if (i >= n) continue;
    int64_t at = first + i;
    Beside<T>* low = beside_at<T>(weights.low, at);
    m[k] = signs[weights.m[at]] * m_absmax;
    v[k] = squares[weights.v[at]] * v_absmax;
    float x[1];
    load_parameters(weights.p + at, low, x);
    rule(x[0], static_cast<float>(weights.g[at]), m[k], v[k]);
    if (weights.rounds_weight) {
      RoundingPlace place = places.at(row, column + i);
      store_rounded(weights.p + at, x[0], rounding_bits(places.words(step, place), place).weight);
    } else {
      store_parameters(weights.p + at, low, x);
    }
    largest_m = larger(largest_m, fabsf(m[k]));
    largest_v = larger(largest_v, fabsf(v[k]));
  }
  largest_m = largest_of_warp(largest_m);
  largest_v = largest_of_warp(largest_v);
  float m_divisor = largest_m > 0.0f ? largest_m : 1.0f, v_divisor = largest_v > 0.0f ? largest_v : 1.0f;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    int i = lane + k * kWarp;
    if (i >= n) continue;
    weights.m[first + i] = nearest_code(signs, m[k] / m_divisor);
    weights.v[first + i] = nearest_code_above_zero(squares, v[k] / v_divisor);
  }
  if (lane == 0) {
    weights.m_absmax[index] = largest_m;
    weights.v_absmax[index] = largest_v;
  }
}

template <class T, class G>
__global__ void __launch_bounds__(kThreads)
    int8_step(const __grid_constant__ Weights<T, G> weights, const __grid_constant__ RoundingPlaces places,
              AdamwInputs inputs, AdamwConstants constants) {
  // Lanes ask for different codes, which constant memory would answer one after the other.
  __shared__ float signs[kLargestBlock], squares[kLargestBlock];
  __shared__ AdamwStep step;
  signs[threadIdx.x] = signed_map.value[threadIdx.x];
  squares[threadIdx.x] = positive_map.value[threadIdx.x];
  if (threadIdx.x == 0) step = inputs.now();
  __syncthreads();
  if (step.scale == 0.0f) return;
  AdamwRule rule(step, constants, weights.weight_decay);
  int64_t count = weights.rows * weights.blocks, warps = static_cast<int64_t>(gridDim.x) * (kThreads / kWarp);
  int64_t warp = static_cast<int64_t>(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
  for (int64_t index = warp; index < count; index += warps)
    step_block(weights, places, rule, *inputs.step, signs, squares, index);
}

template <class T, class G>
void launch_as(const CudaCall& call) {
  const Tensor& p = call.out[0];
  int64_t block = call.attrs.integer("block");
  BUG_IF(block > kLargestBlock, "blocks of {}; the kernel takes {}", block, kLargestBlock);
  Weights<T, G> weights{.p = p.as<T>(),
                        .g = call.in[1].as<G>(),
                        .m = call.out[1].as<uint8_t>(),
                        .v = call.out[2].as<uint8_t>(),
                        .m_absmax = call.out[3].as<float>(),
                        .v_absmax = call.out[4].as<float>(),
                        .low = call.out.size() > 5 ? call.out[5].data : nullptr,
                        .rows = p.shape.rows(),
                        .columns = p.shape.last(),
                        .block = block,
                        .blocks = ceil_div(p.shape.last(), block),
                        .weight_decay = call.attrs.real("weight_decay"),
                        .rounds_weight = call.attrs.integer_or("round_weight", 0) != 0};
  if (p.count() == 0) return;
  // Each block of threads fills its tables once for some blocks of the weight.
  constexpr int64_t kBlocksOfWarp = 8;
  auto grid = static_cast<unsigned>(ceil_div(weights.rows * weights.blocks, kThreads / kWarp * kBlocksOfWarp));
  int8_step<<<grid, kThreads, 0, call.stream>>>(weights, rounding_places(call), adamw_inputs(call),
                                                adamw_constants(call));
}

void launch_adamw_int8(const CudaCall& call) {
  // Gradients are f32, or as narrow as their weight.
  for_cuda_type(call.out[0].dtype,
                [&]<class T>() { call.in[1].dtype == DType::f32 ? launch_as<T, float>(call) : launch_as<T, T>(call); });
}

}  // namespace

const CudaKernel adamw_int8{.launch = launch_adamw_int8};

}  // namespace sextant::cuda
