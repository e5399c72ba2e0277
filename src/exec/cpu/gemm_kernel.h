// The innermost part of f32 matrix products: one tile of c that stays in registers, on operands packed into panels.
// The size of the tile depends on the vector instructions of this machine.
#pragma once

#include <cstdint>

#include "exec/cpu/gemm.h"

namespace sextant::cpu {

// A panel of a holds `rows` rows: element (i, p) stands at a[p * rows + i]; of b, `columns` columns: b[p * columns + j].
struct RegisterTile {
  const float* a;
  const float* b;
  int64_t k;
  float* c;
  int64_t c_stride;
  Write write;
  const float* bias;  // of this tile's columns, or null
};

struct GemmKernel {
  int64_t rows, columns;
  void (*multiply)(const RegisterTile& tile);
};

constexpr int64_t kMostTileElements = 12 * 48;  // rows · columns of any machine's tile

const GemmKernel& gemm_kernel();

}  // namespace sextant::cpu
