// exec/rounding_bits.h, on the device: the same bits. And a weight that is stored rounded by them.
#pragma once

#include "base/bf16.h"
#include "exec/cuda/kernels/parameter.cuh"
#include "exec/cuda/kernels/spans.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "exec/cuda/runtime/philox.cuh"
#include "exec/rounding_bits.h"

namespace sextant::cuda {

// Where the elements of a rank's part of a weight stand in the whole one. A vector is one row.
struct RoundingPlaces {
  uint64_t key;
  int64_t first_row;
  bool is_vector;
  Spans rows, columns;  // of a vector: nothing, and its elements

  __device__ RoundingPlace at(int64_t row, int64_t column) const {
    if (is_vector) return {0, columns.global_index(column) + first_row};
    return {rows.global_index(row) + first_row, columns.global_index(column)};
  }

  __device__ uint4 words(int32_t step, const RoundingPlace& place) const {
    return philox(key, static_cast<uint64_t>(step),
                  static_cast<uint64_t>(place.row) << 32 | static_cast<uint64_t>(place.column / kRoundingColumns));
  }
};

__device__ inline RoundingBits rounding_bits(const uint4& words, const RoundingPlace& place) {
  bool first = place.column % kRoundingColumns == 0;
  uint32_t moments = first ? words.x : words.z, weight = first ? words.y : words.w;
  return {moments & 0xffffu, moments >> 16, weight & 0xffffu};
}

inline RoundingPlaces rounding_places(const CudaCall& call) {
  const Tensor& weight = call.in[0];
  bool is_vector = weight.shape.rank() < 2;
  RoundingPlaces places{.key = static_cast<uint64_t>(call.attrs.integer_or("key", 0)),
                        .first_row = call.attrs.integer_or("first_row", 0),
                        .is_vector = is_vector,
                        .rows = {},
                        .columns = {}};
  if (weight.shape.rank() == 0) {
    places.columns.count = 1;
    places.columns.spans[0] = {.global = 0, .local = 0, .count = 1};
    return places;
  }
  if (!is_vector) places.rows = spans_of(weight, 0);
  places.columns = spans_of(weight, is_vector ? 0 : 1);
  return places;
}

__device__ inline void store_rounded(float* p, float x, uint32_t bits) {
  *p = bf16_value(bf16_bits_at_random(x, bits));
}

__device__ inline void store_rounded(__nv_bfloat16* p, float x, uint32_t bits) {
  *reinterpret_cast<uint16_t*>(p) = bf16_bits_at_random(x, bits);
}

// Weights in f16 have their f32 beside them and are never rounded at random (config/check.cpp).
__device__ inline void store_rounded(__half*, float, uint32_t) {
  __trap();
}

}  // namespace sextant::cuda
