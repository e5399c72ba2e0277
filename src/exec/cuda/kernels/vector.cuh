// 16-byte pieces of rows: V elements of T at an aligned address, loaded and stored at once, and worked on as floats.
// V = 1 is one element, for rows that do not begin on 16-byte boundaries.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "exec/cuda/runtime/real_type.h"

namespace sextant::cuda {

template <class T>
constexpr int kFullVector = static_cast<int>(16 / sizeof(T));

// V elements as they lie in memory.
template <class T, int V>
struct Packed {
  static constexpr int kParts = V * static_cast<int>(sizeof(T)) / 16;
  static_assert(kParts * 16 == V * static_cast<int>(sizeof(T)));
  uint4 parts[kParts];
};

template <class T>
struct Packed<T, 1> {
  T part;
};

template <int V, class T>
__device__ inline Packed<T, V> load(const T* from) {
  Packed<T, V> packed;
  if constexpr (V == 1) {
    packed.part = *from;
  } else {
#pragma unroll
    for (int i = 0; i < packed.kParts; ++i) packed.parts[i] = reinterpret_cast<const uint4*>(from)[i];
  }
  return packed;
}

// By name, because the compiler takes some plain stores of a uint4 apart into words.
template <int V, class T>
__device__ inline void store(T* to, const Packed<T, V>& packed) {
  if constexpr (V == 1) {
    *to = packed.part;
  } else {
#pragma unroll
    for (int i = 0; i < packed.kParts; ++i) __stwb(reinterpret_cast<uint4*>(to) + i, packed.parts[i]);
  }
}

__device__ inline void unpack_part(const uint4& part, float* x, float) {
  x[0] = __uint_as_float(part.x), x[1] = __uint_as_float(part.y);
  x[2] = __uint_as_float(part.z), x[3] = __uint_as_float(part.w);
}

__device__ inline void unpack_part(const uint4& part, float* x, __nv_bfloat16) {
  const uint32_t words[4] = {part.x, part.y, part.z, part.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = __uint_as_float(words[i] << 16);
    x[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}

__device__ inline void unpack_part(const uint4& part, float* x, __half) {
  const uint32_t words[4] = {part.x, part.y, part.z, part.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float2 two = __half22float2(reinterpret_cast<const __half2&>(words[i]));
    x[2 * i] = two.x, x[2 * i + 1] = two.y;
  }
}

__device__ inline uint4 pack_part(const float* x, float) {
  return {__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]), __float_as_uint(x[3])};
}

__device__ inline uint32_t pack_two(float low, float high, __nv_bfloat16) {
  __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}

__device__ inline uint32_t pack_two(float low, float high, __half) {
  __half2 pair = __floats2half2_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}

template <class T>
__device__ inline uint4 pack_part(const float* x, T type) {
  static_assert(sizeof(T) == 2);
  return {pack_two(x[0], x[1], type), pack_two(x[2], x[3], type), pack_two(x[4], x[5], type),
          pack_two(x[6], x[7], type)};
}

template <class T, int V>
__device__ inline void unpack(const Packed<T, V>& packed, float (&x)[V]) {
  if constexpr (V == 1) {
    x[0] = static_cast<float>(packed.part);
  } else {
#pragma unroll
    for (int i = 0; i < packed.kParts; ++i) unpack_part(packed.parts[i], x + i * kFullVector<T>, T{});
  }
}

template <class T, int V>
__device__ inline Packed<T, V> pack(const float (&x)[V]) {
  Packed<T, V> packed;
  if constexpr (V == 1) {
    packed.part = static_cast<T>(x[0]);
  } else {
#pragma unroll
    for (int i = 0; i < packed.kParts; ++i) packed.parts[i] = pack_part(x + i * kFullVector<T>, T{});
  }
  return packed;
}

template <int V, class T>
__device__ inline void load_floats(const T* from, float (&x)[V]) {
  unpack(load<V>(from), x);
}

template <int V, class T>
__device__ inline void store_floats(T* to, const float (&x)[V]) {
  store(to, pack<T>(x));
}

// Calls body.template operator()<T, V>(): V elements fill 16 bytes where `width`, the step from row to row, allows it.
template <class Body>
void for_cuda_vectors(DType dtype, int64_t width, const Body& body) {
  for_cuda_type(dtype, [&]<class T>() {
    if (width % kFullVector<T> == 0)
      body.template operator()<T, kFullVector<T>>();
    else
      body.template operator()<T, 1>();
  });
}

}  // namespace sextant::cuda
