// A weight as optimizers load and store it: f32, or bf16 whose low halves lie beside it (ops/adamw.cpp); bf16 alone is
// rounded after every step.
#pragma once

#include "exec/cuda/kernels/vector.cuh"

namespace sextant::cuda {

template <int V>
__device__ inline void load_parameters(const float* p, const uint16_t*, float (&x)[V]) {
  load_floats(p, x);
}

template <int V>
__device__ inline void store_parameters(float* p, uint16_t*, const float (&x)[V]) {
  store_floats(p, x);
}

__device__ inline float from_halves(uint32_t upper, uint32_t low) {
  return __uint_as_float(((upper - (low >> 15)) << 16) | low);
}

struct Halves {
  uint32_t upper, low;
};

__device__ inline Halves halves_of(float x) {
  uint32_t bits = __float_as_uint(x);
  return {((bits >> 16) + ((bits >> 15) & 1)) & 0xffffu, bits & 0xffffu};
}

template <int V>
__device__ inline void load_parameters(const __nv_bfloat16* p, const uint16_t* low, float (&x)[V]) {
  if (!low) return load_floats(p, x);
  if constexpr (V == 1) {
    x[0] = from_halves(reinterpret_cast<const uint16_t*>(p)[0], low[0]);
  } else {
    uint4 uppers = *reinterpret_cast<const uint4*>(p), lows = *reinterpret_cast<const uint4*>(low);
    const uint32_t upper[4] = {uppers.x, uppers.y, uppers.z, uppers.w}, under[4] = {lows.x, lows.y, lows.z, lows.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[2 * i] = from_halves(upper[i] & 0xffffu, under[i] & 0xffffu);
      x[2 * i + 1] = from_halves(upper[i] >> 16, under[i] >> 16);
    }
  }
}

template <int V>
__device__ inline void store_parameters(__nv_bfloat16* p, uint16_t* low, const float (&x)[V]) {
  if (!low) return store_floats(p, x);
  if constexpr (V == 1) {
    Halves halves = halves_of(x[0]);
    reinterpret_cast<uint16_t*>(p)[0] = static_cast<uint16_t>(halves.upper);
    low[0] = static_cast<uint16_t>(halves.low);
  } else {
    uint32_t upper[4], under[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      Halves first = halves_of(x[2 * i]), second = halves_of(x[2 * i + 1]);
      upper[i] = first.upper | second.upper << 16;
      under[i] = first.low | second.low << 16;
    }
    __stwb(reinterpret_cast<uint4*>(p), {upper[0], upper[1], upper[2], upper[3]});
    __stwb(reinterpret_cast<uint4*>(low), {under[0], under[1], under[2], under[3]});
  }
}

}  // namespace sextant::cuda
