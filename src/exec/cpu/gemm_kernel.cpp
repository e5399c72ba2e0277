#include "exec/cpu/gemm_kernel.h"

#include <utility>

// This file is compiled once per instruction set of the processor family; the best one is chosen when the program runs.
// SVE is left out: its vectors have no size at compile time, so a tile cannot be an array of them.
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

// The accumulators fill the register file but for what holds a column of a and a row of b: 24 of 32 registers (two or
// three for b, one or two for a), 12 of 16.
#if HWY_TARGET == HWY_NEON
constexpr int kRows = 8, kVectors = 3;
#elif HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
constexpr int kRows = 12, kVectors = 2;
#else
constexpr int kRows = 6, kVectors = 2;
#endif

struct Accumulators {
  Vector at[kRows][kVectors];
};

HWY_INLINE void add_row(Vector* sums, Vector a, const Vector* b) {
#pragma GCC unroll 4
  for (int j = 0; j < kVectors; ++j) sums[j] = hn::MulAdd(a, b[j], sums[j]);
}

// sums += a (a column of kRows) · b (a row of kVectors).
HWY_INLINE void add_outer_product(Accumulators& sums, const float* HWY_RESTRICT a, const Vector* b) {
#if HWY_TARGET == HWY_NEON
  // Arm multiplies by one lane of a register at no cost, where a broadcast would take a slot of the multiplier.
  float32x4_t top = vld1q_f32(a), bottom = vld1q_f32(a + 4);
  [&]<int... lane>(std::integer_sequence<int, lane...>) {
    for (int j = 0; j < kVectors; ++j) {
      ((sums.at[lane][j].raw = vfmaq_laneq_f32(sums.at[lane][j].raw, b[j].raw, top, lane)), ...);
      ((sums.at[lane + 4][j].raw = vfmaq_laneq_f32(sums.at[lane + 4][j].raw, b[j].raw, bottom, lane)), ...);
    }
  }(std::make_integer_sequence<int, 4>{});
#else
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) add_row(sums.at[i], hn::Set(Lanes(), a[i]), b);
#endif
}

HWY_INLINE void store(const Accumulators& sums, const RegisterTile& tile) {
  const Lanes lanes;
  const int64_t width = static_cast<int64_t>(hn::Lanes(lanes));
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      float* to = tile.c + i * tile.c_stride + j * width;
      Vector value = sums.at[i][j];
      if (tile.write == Write::add) value = hn::Add(value, hn::LoadU(lanes, to));
      if (tile.bias != nullptr) value = hn::Add(value, hn::LoadU(lanes, tile.bias + j * width));
      hn::StoreU(value, lanes, to);
    }
  }
}

void multiply_tile(const RegisterTile& tile) {
  const Lanes lanes;
  const int64_t width = static_cast<int64_t>(hn::Lanes(lanes));
  Accumulators sums;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    hwy::Prefetch(tile.c + i * tile.c_stride);
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) sums.at[i][j] = hn::Zero(lanes);
  }
  const float* HWY_RESTRICT a = tile.a;
  const float* HWY_RESTRICT b = tile.b;
  for (int64_t p = 0; p < tile.k; ++p) {
    Vector row[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) row[j] = hn::LoadU(lanes, b + j * width);
    add_outer_product(sums, a, row);
    a += kRows;
    b += kVectors * width;
  }
  store(sums, tile);
}

const GemmKernel* kernel() {
  static const GemmKernel kernel{kRows, kVectors * static_cast<int64_t>(hn::Lanes(Lanes())), multiply_tile};
  return &kernel;
}

}  // namespace sextant::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::cpu {

HWY_EXPORT(kernel);

const GemmKernel& gemm_kernel() { return *HWY_DYNAMIC_DISPATCH(kernel)(); }

}  // namespace sextant::cpu
#endif
