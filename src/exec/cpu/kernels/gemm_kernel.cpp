#include "exec/cpu/kernels/gemm_kernel.h"

#include <algorithm>

// This file is compiled once per instruction set of the processor family; the best one is chosen when the program runs.
// SVE is left out: its vectors have no size at compile time, so a tile cannot be an array of them.
// Highway's emulation of vectors, there only for processors older than SSSE3, is allowed in spite of a compiler bug:
// its stand-in has one lane, which this file could not use.
#define HWY_BROKEN_EMU128 0
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "exec/cpu/kernels/gemm_kernel.cpp"
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
constexpr int kRows = HWY_ARCH_ARM_A64 || HWY_TARGET <= HWY_AVX3 ? 8 : 4;
constexpr int64_t kDepth = HWY_ARCH_ARM_A64 ? 384 : 256;
static_assert(kRows <= kMostTileRows && kVectors * kLanes <= kMostTileColumns && kDepth <= kMostDepth,
              "targets/cpu/gemm_sizes.h plans less scratch than this tile packs");

// A tile is computed with its first kUsed vectors of columns, so that one at the right edge of c costs what it holds.
template <int kUsed>
using Tile = Vector[kRows][kUsed];

#if HWY_ARCH_ARM_A64
// Arm multiplies by one lane of a register at no cost, where a broadcast would take a slot of the multiplier.
template <int kLane, int kUsed>
HWY_INLINE void add_row(Vector (&sums)[kUsed], float32x4_t a, const Vector (&b)[kUsed]) {
  for (int j = 0; j < kUsed; ++j) sums[j].raw = vfmaq_laneq_f32(sums[j].raw, b[j].raw, a, kLane);
}
#endif

// sums += a (a column of kRows numbers) · b (a row of vectors).
template <int kUsed>
HWY_INLINE void add_outer_product(Tile<kUsed>& sums, const float* HWY_RESTRICT a, const Vector (&b)[kUsed]) {
#if HWY_ARCH_ARM_A64
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
    for (int j = 0; j < kUsed; ++j)
      sums[i][j] =
          tile.write == Write::go_on ? hn::LoadU(lanes, tile.c + i * tile.c_stride + j * kLanes) : hn::Zero(lanes);
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

// Packing. `from` is where a panel's first row stands at the first of `columns` columns, `to` where it goes.
struct Strip {
  const Matrix<float>& x;
  const float* HWY_RESTRICT from;
  float* HWY_RESTRICT to;
  int64_t columns;
};

template <int64_t kWidth, int64_t kCopied>
void copy_rows(Strip strip) {
  for (int64_t p = 0; p < strip.columns; ++p, strip.from += strip.x.column_stride, strip.to += kWidth)
    std::copy_n(strip.from, kCopied, strip.to);
}

template <int64_t kWidth>
void transpose_four_rows(Strip strip) {
  const hn::CappedTag<float, 4> four;
  const int64_t stride = strip.x.row_stride;
  int64_t p = 0;
  for (; p + 4 <= strip.columns; p += 4, strip.to += 4 * kWidth) {
    const float* from = strip.from + p;
    auto a = hn::LoadU(four, from), b = hn::LoadU(four, from + stride);
    auto c = hn::LoadU(four, from + 2 * stride), d = hn::LoadU(four, from + 3 * stride);
    auto ab = hn::InterleaveLower(four, a, b), cd = hn::InterleaveLower(four, c, d);
    hn::StoreU(hn::ConcatLowerLower(four, cd, ab), four, strip.to);
    hn::StoreU(hn::ConcatUpperUpper(four, cd, ab), four, strip.to + kWidth);
    ab = hn::InterleaveUpper(four, a, b);
    cd = hn::InterleaveUpper(four, c, d);
    hn::StoreU(hn::ConcatLowerLower(four, cd, ab), four, strip.to + 2 * kWidth);
    hn::StoreU(hn::ConcatUpperUpper(four, cd, ab), four, strip.to + 3 * kWidth);
  }
  for (; p < strip.columns; ++p, strip.to += kWidth)
    for (int64_t i = 0; i < 4; ++i) strip.to[i] = strip.from[i * stride + p];
}

// `rows` may be none.
template <int64_t kWidth>
void pad_to_four_rows(const Strip& strip, int64_t rows) {
  for (int64_t p = 0; p < strip.columns; ++p)
    for (int64_t i = 0; i < 4; ++i)
      strip.to[p * kWidth + i] = i < rows ? strip.from[i * strip.x.row_stride + p * strip.x.column_stride] : 0.0f;
}

template <int64_t kWidth>
void pack_panel(const Strip& panel, int64_t rows) {
  bool adjacent = panel.x.row_stride == 1;
  if (adjacent && rows == kWidth) return copy_rows<kWidth, kWidth>(panel);
  for (int64_t i = 0; i < kWidth; i += 4) {
    Strip four{panel.x, panel.from + i * panel.x.row_stride, panel.to + i, panel.columns};
    if (rows - i < 4)
      pad_to_four_rows<kWidth>(four, rows - i);
    else if (adjacent)
      copy_rows<kWidth, 4>(four);
    else
      transpose_four_rows<kWidth>(four);
  }
}

template <int64_t kWidth>
void pack_panels(const Packing& packing) {
  // Where rows are adjacent, few columns at a time: the next panel then finds its part of the same cache lines.
  const int64_t step = packing.x.row_stride == 1 ? 16 : packing.k;
  for (int64_t begin = 0; begin < packing.k; begin += step)
    for (int64_t first = 0; first < packing.m; first += kWidth) {
      Strip panel{packing.x, packing.x.at(first, begin), packing.to + first * packing.k + begin * kWidth,
                  std::min(step, packing.k - begin)};
      pack_panel<kWidth>(panel, std::min(kWidth, packing.m - first));
    }
}

void pack(const Packing& packing) {
  packing.width == kRows ? pack_panels<kRows>(packing) : pack_panels<kVectors * kLanes>(packing);
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
