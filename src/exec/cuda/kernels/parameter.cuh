// A weight as optimizers load and store it: f32; bf16 whose low halves lie beside it (ops/adamw.cpp), or bf16 alone,
// which is rounded after every step; or f16 whose f32 lies beside it.
#pragma once

#include <type_traits>

#include "exec/cuda/kernels/vector.cuh"

namespace sextant::cuda {

// Type of the numbers that complete a weight of type T to f32: the f32 master of f16, the low 16 bits of bf16.
template <class T>
using Beside = std::conditional_t<std::is_same_v<T, __half>, float, uint16_t>;

// Address of the number for element `at`; null where none is stored.
template <class T>
__device__ inline Beside<T>* beside_at(void* low, int64_t at) {
  return low ? static_cast<Beside<T>*>(low) + at : nullptr;
}
template <class T>
__device__ inline const Beside<T>* beside_at(const void* low, int64_t at) {
  return low ? static_cast<const Beside<T>*>(low) + at : nullptr;
}

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

template <int V>
__device__ inline void load_parameters(const __half* p, const float* master, float (&x)[V]) {
  if (master)
    load_floats(master, x);
  else
    load_floats(p, x);
}

template <int V>
__device__ inline void store_parameters(__half* p, float* master, const float (&x)[V]) {
  if (master) store_floats(master, x);
  store_floats(p, x);
}

}  // namespace sextant::cuda
