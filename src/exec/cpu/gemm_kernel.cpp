#include "exec/cpu/gemm_kernel.h"

#include <algorithm>

// This file is compiled once per instruction set of the processor family; the best one is chosen when the program runs.
// SVE is left out: its vectors have no size at compile time, so a tile cannot be an array of them.
// Highway's emulation of vectors, there only for processors older than SSSE3, is allowed in spite of a compiler bug:
// its stand-in has one lane, which this file could not use.
#define HWY_BROKEN_EMU128 0
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "exec/cpu/gemm_kernel.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Lanes = hn::ScalableTag<float>;
using Vector = hn::Vec<Lanes>;
constexpr int64_t kLanes = hn::MaxLanes(Lanes());

// With a row of b and a number or two of a, the accumulators fill the register file: 24 of 32 registers, or 12 of 16.
constexpr int kVectors = 3;
constexpr int kRows = HWY_TARGET == HWY_NEON || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3) ? 8 : 4;
constexpr int64_t kDepth = HWY_TARGET == HWY_NEON ? 384 : 256;

// A tile is computed with its first kUsed vectors of columns, so that one at the right edge of c costs what it holds.
template <int kUsed>
using Tile = Vector[kRows][kUsed];

#if HWY_TARGET == HWY_NEON
// Arm multiplies by one lane of a register at no cost, where a broadcast would take a slot of the multiplier.
template <int kLane, int kUsed>
HWY_INLINE void add_row(Vector (&sums)[kUsed], float32x4_t a, const Vector (&b)[kUsed]) {
  for (int j = 0; j < kUsed; ++j) sums[j].raw = vfmaq_laneq_f32(sums[j].raw, b[j].raw, a, kLane);
}
#endif

// sums += a (a column of kRows numbers) · b (a row of vectors).
template <int kUsed>
HWY_INLINE void add_outer_product(Tile<kUsed>& sums, const float* HWY_RESTRICT a, const Vector (&b)[kUsed]) {
#if HWY_TARGET == HWY_NEON
  float32x4_t top = vld1q_f32(a), bottom = vld1q_f32(a + 4);
  add_row<0>(sums[0], top, b);
  add_row<1>(sums[1], top, b);
  add_row<2>(sums[2], top, b);
  add_row<3>(sums[3], top, b);
  add_row<0>(sums[4], bottom, b);
  add_row<1>(sums[5], bottom, b);
  add_row<2>(sums[6], bottom, b);
  add_row<3>(sums[7], bottom, b);
#else
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    Vector one = hn::Set(Lanes(), a[i]);
#pragma GCC unroll 4
    for (int j = 0; j < kUsed; ++j) sums[i][j] = hn::MulAdd(one, b[j], sums[i][j]);
  }
#endif
}

// The choices are made once for the tile, not for each vector of it.
template <bool kAdd, bool kBias, int kUsed>
HWY_INLINE void store(const Tile<kUsed>& sums, const RegisterTile& tile) {
  const Lanes lanes;
  const int64_t stride = tile.c_stride;
  float* HWY_RESTRICT row = tile.c;
  const float* HWY_RESTRICT bias = tile.bias;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, row += stride) {
#pragma GCC unroll 4
    for (int j = 0; j < kUsed; ++j) {
      Vector value = sums[i][j];
      if (kAdd) value = hn::Add(value, hn::LoadU(lanes, row + j * kLanes));
      if (kBias) value = hn::Add(value, hn::LoadU(lanes, bias + j * kLanes));
      hn::StoreU(value, lanes, row + j * kLanes);
    }
  }
}

template <int kUsed>
HWY_INLINE void multiply_vectors(const RegisterTile& tile) {
  const Lanes lanes;
  Tile<kUsed> sums;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    __builtin_prefetch(tile.c + i * tile.c_stride, 1);
#pragma GCC unroll 4
    for (int j = 0; j < kUsed; ++j) sums[i][j] = hn::Zero(lanes);
  }
  for (int64_t i = 0; i < tile.ahead_lines; ++i) __builtin_prefetch(tile.ahead + i * kFloatsPerLine);
  const float* HWY_RESTRICT a = tile.a;
  const float* HWY_RESTRICT b = tile.b;
  for (int64_t p = 0; p < tile.k; ++p) {
    Vector row[kUsed];
#pragma GCC unroll 4
    for (int j = 0; j < kUsed; ++j) row[j] = hn::LoadU(lanes, b + j * kLanes);
    add_outer_product<kUsed>(sums, a, row);
    a += kRows;
    b += kVectors * kLanes;
  }
  if (tile.bias != nullptr)
    tile.write == Write::add ? store<true, true, kUsed>(sums, tile) : store<false, true, kUsed>(sums, tile);
  else
    tile.write == Write::add ? store<true, false, kUsed>(sums, tile) : store<false, false, kUsed>(sums, tile);
}

void multiply_tile(const RegisterTile& tile) {
  if (tile.columns == 3 * kLanes) return multiply_vectors<3>(tile);
  if (tile.columns == 2 * kLanes) return multiply_vectors<2>(tile);
  multiply_vectors<1>(tile);
}

using Four = hn::CappedTag<float, 4>;  // panels are packed four rows at a time, whatever the vectors' size

void copy_four_rows(const Packing& packing, const float* HWY_RESTRICT from, float* HWY_RESTRICT to, int64_t columns) {
  for (int64_t p = 0; p < columns; ++p, from += packing.x.column_stride, to += packing.width)
    hn::StoreU(hn::LoadU(Four(), from), Four(), to);
}

void transpose_four_rows(const Packing& packing, const float* HWY_RESTRICT from, float* HWY_RESTRICT to,
                         int64_t columns) {
  const Four four;
  const int64_t stride = packing.x.row_stride, width = packing.width;
  int64_t p = 0;
  for (; p + 4 <= columns; p += 4, to += 4 * width) {
    auto a = hn::LoadU(four, from + p), b = hn::LoadU(four, from + p + stride);
    auto c = hn::LoadU(four, from + p + 2 * stride), d = hn::LoadU(four, from + p + 3 * stride);
    auto ab = hn::InterleaveLower(four, a, b), cd = hn::InterleaveLower(four, c, d);
    hn::StoreU(hn::ConcatLowerLower(four, cd, ab), four, to);
    hn::StoreU(hn::ConcatUpperUpper(four, cd, ab), four, to + width);
    ab = hn::InterleaveUpper(four, a, b);
    cd = hn::InterleaveUpper(four, c, d);
    hn::StoreU(hn::ConcatLowerLower(four, cd, ab), four, to + 2 * width);
    hn::StoreU(hn::ConcatUpperUpper(four, cd, ab), four, to + 3 * width);
  }
  for (; p < columns; ++p, to += width)
    for (int64_t i = 0; i < 4; ++i) to[i] = from[i * stride + p];
}

// Columns [begin, begin + columns) of x. Few at a time where columns are far apart: neighbouring panels then find their
// part of the same cache lines and pages.
void pack_columns(const Packing& packing, int64_t begin, int64_t columns) {
  const Matrix<float>& x = packing.x;
  float* to = packing.to + begin * packing.width;
  for (int64_t first = 0; first < packing.m; first += packing.width, to += packing.width * packing.k) {
    for (int64_t i = 0; i < packing.width; i += 4) {
      int64_t left = packing.m - first - i;
      if (left >= 4 && x.row_stride == 1)
        copy_four_rows(packing, x.at(first + i, begin), to + i, columns);
      else if (left >= 4)
        transpose_four_rows(packing, x.at(first + i, begin), to + i, columns);
      else
        for (int64_t p = 0; p < columns; ++p)
          for (int64_t r = 0; r < 4; ++r)
            to[p * packing.width + i + r] = r < left ? *x.at(first + i + r, begin + p) : 0.0f;
    }
  }
}

void pack(const Packing& packing) {
  int64_t step = packing.x.row_stride == 1 ? 32 : packing.k;
  for (int64_t begin = 0; begin < packing.k; begin += step)
    pack_columns(packing, begin, std::min(step, packing.k - begin));
}

const GemmKernel* kernel() {
  static constexpr GemmKernel kernel{.rows = kRows,
                                     .columns = kVectors * kLanes,
                                     .lanes = kLanes,
                                     .depth = kDepth,
                                     .multiply = multiply_tile,
                                     .pack = pack};
  return &kernel;
}

}  // namespace sextant::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::cpu {

HWY_EXPORT(kernel);

const GemmKernel& gemm_kernel() {
  return *HWY_DYNAMIC_DISPATCH(kernel)();
}

}  // namespace sextant::cpu
#endif
