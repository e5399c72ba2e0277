// Sums of 32-bit words over elements as they lie in memory (exec/state_checksums.h), taken from registers.
#pragma once

#include "exec/cuda/kernels/parameter.cuh"
#include "exec/cuda/kernels/reduce.cuh"

namespace sextant::cuda {

using WordSum = unsigned long long;

// An element of 16 bits is the upper half of its word where its index is odd.
__device__ inline WordSum half_word(uint32_t bits, int64_t index) {
  return static_cast<WordSum>(bits) << (16 * (index & 1));
}

// Of the elements from index `at` on, which is a multiple of V.
template <class T, int V>
__device__ inline WordSum word_sum(const Packed<T, V>& packed, int64_t at) {
  if constexpr (V == 1 && sizeof(T) == 2) {
    return half_word(reinterpret_cast<const uint16_t&>(packed.part), at);
  } else if constexpr (V == 1) {
    return reinterpret_cast<const uint32_t&>(packed.part);
  } else {
    WordSum sum = 0;
#pragma unroll
    for (int i = 0; i < packed.kParts; ++i)
      sum += static_cast<WordSum>(packed.parts[i].x) + packed.parts[i].y + packed.parts[i].z + packed.parts[i].w;
    return sum;
  }
}

template <int V>
__device__ inline WordSum word_sum_of_floats(const float (&x)[V]) {
  WordSum sum = 0;
#pragma unroll
  for (int i = 0; i < V; ++i) sum += __float_as_uint(x[i]);
  return sum;
}

// Of a weight and of what lies beside it, as store_parameters writes them.
struct WeightWords {
  WordSum weight = 0, beside = 0;
};

template <class T, int V>
__device__ inline WeightWords words_of_parameters(const float (&x)[V], bool has_beside, int64_t at) {
  if constexpr (std::is_same_v<T, float>) {
    return {word_sum_of_floats(x), 0};
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    if (!has_beside) return {word_sum(pack<T>(x), at), 0};
    WeightWords words;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      Halves halves = halves_of(x[i]);
      words.weight += half_word(halves.upper, at + i);
      words.beside += half_word(halves.low, at + i);
    }
    return words;
  } else {
    return {word_sum(pack<T>(x), at), has_beside ? word_sum_of_floats(x) : 0};
  }
}

}  // namespace sextant::cuda
