#include "exec/cpu/gemm.h"

#include <cblas.h>

#include <algorithm>

#include "exec/cpu/blocks.h"
#include "exec/cpu/gemm_kernel.h"

namespace sextant::cpu {

namespace {

// The blocks of the product (after Goto and van de Geijn 2008). A panel of a and one of b share the L1 cache, which limits
// their depth; kRows rows of a, packed by the thread that uses them, live in its L2; kColumns columns of b, packed once
// for all threads, in L3.
constexpr int64_t kDepth = 512, kRows = 128, kColumns = 4096;

// As few equal blocks as do not exceed `most`, in multiples of `unit`.
int64_t equal_blocks(int64_t n, int64_t most, int64_t unit) {
  return round_up(ceil_div(n, std::max<int64_t>(1, ceil_div(n, most))), unit);
}

// A tile at the lower or right edge of c, of which only rows×columns exist.
void multiply_edge(const GemmKernel& kernel, RegisterTile tile, int64_t rows, int64_t columns) {
  float whole[kMostTileElements];
  float* c = tile.c;
  int64_t c_stride = tile.c_stride;
  Write write = tile.write;
  const float* bias = tile.bias;
  tile.c = whole;
  tile.c_stride = kernel.columns;
  tile.write = Write::over;
  tile.bias = nullptr;
  kernel.multiply(tile);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float value = whole[i * kernel.columns + j] + (bias != nullptr ? bias[j] : 0.0f);
      float& at = c[i * c_stride + j];
      at = write == Write::add ? at + value : value;
    }
}

// c = a·b for packed a and b: one block of the product.
void multiply_packed(const Product<float>& p, const float* a, const float* b) {
  const GemmKernel& kernel = gemm_kernel();
  for (int64_t j = 0; j < p.n; j += kernel.columns) {
    for (int64_t i = 0; i < p.m; i += kernel.rows) {
      RegisterTile tile{.a = a + i * p.k,
                        .b = b + j * p.k,
                        .k = p.k,
                        .c = p.c + i * p.c_stride + j,
                        .c_stride = p.c_stride,
                        .write = p.write,
                        .bias = p.bias != nullptr ? p.bias + j : nullptr};
      if (i + kernel.rows <= p.m && j + kernel.columns <= p.n)
        kernel.multiply(tile);
      else
        multiply_edge(kernel, tile, std::min(kernel.rows, p.m - i), std::min(kernel.columns, p.n - j));
    }
  }
}

// The part of p that multiplies columns [first, first + depth) of a; all but the first part add.
Product<float> depth_block(const Product<float>& p, int64_t first, int64_t depth) {
  Product<float> part = p;
  part.k = std::min(depth, p.k - first);
  part.a.data = p.a.at(0, first);
  part.b.data = p.b.at(first, 0);
  if (first > 0) {
    part.write = Write::add;
    part.bias = nullptr;
  }
  return part;
}

template <class T>
Product<T> tile_of(const Product<T>& p, int64_t i, int64_t rows, int64_t j, int64_t columns) {
  Product<T> tile = p;
  tile.m = std::min(rows, p.m - i);
  tile.n = std::min(columns, p.n - j);
  tile.a.data = p.a.at(i, 0);
  tile.b.data = p.b.at(0, j);
  tile.c = p.c + i * p.c_stride + j;
  if (p.bias != nullptr) tile.bias = p.bias + j;
  return tile;
}

int64_t a_bytes(int64_t k) { return round_up(kRows + gemm_kernel().rows, 16) * std::min(k, kDepth) * 4; }
int64_t b_bytes(int64_t n, int64_t k) {
  return round_up(std::min(n, kColumns) + gemm_kernel().columns, 16) * std::min(k, kDepth) * 4;
}

void multiply_on_team(const Product<float>& p, ThreadTeam& team, std::byte* workspace) {
  const GemmKernel& kernel = gemm_kernel();
  float* b = reinterpret_cast<float*>(workspace + team.size() * a_bytes(p.k));
  team.parallel_for(ceil_div(p.n, kernel.columns * 16), [&](int64_t task, int) {
    int64_t first = task * kernel.columns * 16;
    Matrix<float> rows = p.b.transposed();
    rows.data = rows.at(first, 0);
    kernel.pack({rows, std::min(kernel.columns * 16, p.n - first), p.k, kernel.columns, b + first * p.k});
  });
  int64_t rows = equal_blocks(p.m, kRows, kernel.rows);
  team.parallel_for(ceil_div(p.m, rows), [&](int64_t task, int thread) {
    float* a = reinterpret_cast<float*>(workspace + thread * a_bytes(p.k));
    Product<float> tile = tile_of(p, task * rows, rows, 0, p.n);
    kernel.pack({tile.a, tile.m, tile.k, kernel.rows, a});
    multiply_packed(tile, a, b);
  });
}

void blas(const Product<double>& p) {
  auto order = [](const Matrix<double>& x) { return x.column_stride == 1 ? CblasNoTrans : CblasTrans; };
  auto stride = [](const Matrix<double>& x) {
    return static_cast<int>(x.column_stride == 1 ? x.row_stride : x.column_stride);
  };
  cblas_dgemm(CblasRowMajor, order(p.a), order(p.b), static_cast<int>(p.m), static_cast<int>(p.n),
              static_cast<int>(p.k), 1, p.a.data, stride(p.a), p.b.data, stride(p.b), p.write == Write::add ? 1 : 0, p.c,
              static_cast<int>(p.c_stride));
  if (p.bias == nullptr) return;
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) p.c[i * p.c_stride + j] += p.bias[j];
}

}  // namespace

void multiply(const Product<float>& p, std::byte* scratch) {
  const GemmKernel& kernel = gemm_kernel();
  float* a = reinterpret_cast<float*>(scratch);
  float* b = reinterpret_cast<float*>(scratch + a_bytes(p.k));
  int64_t depth = equal_blocks(p.k, kDepth, 1), rows = equal_blocks(p.m, kRows, kernel.rows);
  int64_t columns = equal_blocks(p.n, kColumns, kernel.columns);
  for (int64_t first = 0; first < p.k; first += depth) {
    Product<float> slab = depth_block(p, first, depth);
    for (int64_t j = 0; j < p.n; j += columns) {
      Product<float> strip = tile_of(slab, 0, p.m, j, columns);
      kernel.pack({strip.b.transposed(), strip.n, strip.k, kernel.columns, b});
      for (int64_t i = 0; i < p.m; i += rows) {
        Product<float> tile = tile_of(strip, i, rows, 0, strip.n);
        kernel.pack({tile.a, tile.m, tile.k, kernel.rows, a});
        multiply_packed(tile, a, b);
      }
    }
  }
}

void multiply(const Product<double>& p, std::byte*) { blas(p); }

int64_t multiply_scratch(int64_t n, int64_t k) { return a_bytes(k) + b_bytes(n, k); }

void multiply(const Product<float>& p, ThreadTeam& team, std::byte* workspace) {
  int64_t depth = equal_blocks(p.k, kDepth, 1), columns = equal_blocks(p.n, kColumns, gemm_kernel().columns);
  for (int64_t first = 0; first < p.k; first += depth) {
    Product<float> slab = depth_block(p, first, depth);
    for (int64_t j = 0; j < p.n; j += columns)
      multiply_on_team(tile_of(slab, 0, p.m, j, columns), team, workspace);
  }
}

void multiply(const Product<double>& p, ThreadTeam& team, std::byte*) {
  constexpr int64_t kTile = 128;
  int64_t across = ceil_div(p.n, kTile);
  team.parallel_for(ceil_div(p.m, kTile) * across, [&](int64_t task, int) {
    blas(tile_of(p, task / across * kTile, kTile, task % across * kTile, kTile));
  });
}

int64_t multiply_workspace(int64_t n, int64_t k, int threads) { return threads * a_bytes(k) + b_bytes(n, k); }

void use_single_threaded_blas() { openblas_set_num_threads(1); }

}  // namespace sextant::cpu
