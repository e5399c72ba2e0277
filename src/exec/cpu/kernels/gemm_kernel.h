// The innermost part of f32 GEMMs: one tile of c that stays in registers, on operands packed into panels.
// The size of the tile depends on the vector instructions of this machine.
#pragma once

#include <cstdint>

#include "exec/cpu/kernels/gemm.h"

namespace sextant::cpu {

// A panel of a holds `rows` rows: element (i, p) stands at a[p * rows + i]; of b, `columns` columns: b[p * columns +
// j].
struct RegisterTile {
  const float* a;
  const float* b;
  int64_t k;
  int64_t columns;  // to compute: a multiple of the kernel's lanes
  float* c;
  int64_t c_stride;
  Write write;
  const float* bias;   // of this tile's columns, or null
  const float* ahead;  // what the caller will need soon: brought nearer while this tile is computed
  int64_t ahead_lines;
};

// Rows [0, m) of x (m×k) cut into panels of `width` rows, the last one filled up with zeros: element (i, p) of a panel
// goes to to[p * width + i]. The columns of b are the rows of its transpose.
struct Packing {
  Matrix<float> x;
  int64_t m, k;
  int64_t width;  // the kernel's rows or columns
  float* to;
};

struct GemmKernel {
  int64_t rows, columns;  // of a register tile; multiples of 4
  int64_t lanes;          // numbers in a vector
  int64_t depth;          // the longest k for which a panel of a and one of b fit the L1 cache together
  void (*multiply)(const RegisterTile& tile);
  void (*pack)(const Packing& packing);
};

constexpr int64_t kFloatsPerLine = 16;  // of the cache
constexpr int64_t kMostTileElements = kMostTileRows * kMostTileColumns;

const GemmKernel& gemm_kernel();

}  // namespace sextant::cpu
