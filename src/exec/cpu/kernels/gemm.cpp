#include "exec/cpu/kernels/gemm.h"

#include <cblas.h>

#include <algorithm>

#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/gemm_kernel.h"
#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

// The blocks of the GEMM (after Goto and van de Geijn 2008). A panel of a and one of b share the L1 cache; up to
// kGemmRows rows of a, packed by the thread that uses them, live in its L2; up to kGemmColumns columns of b, packed
// once for all threads, in L3.
//
// How c is cut may depend on the thread count: each of its elements is the same sum, over k in order, in any tile.
constexpr int64_t kFewestRows = 64, kFewestColumns = 96;  // smaller tiles would spend their time packing
constexpr int64_t kPanelsPerTask = 16;                    // of b

// As few equal blocks as do not exceed `most`, in multiples of `unit`.
int64_t equal_blocks(int64_t n, int64_t most, int64_t unit) {
  return round_up(ceil_div(n, std::max<int64_t>(1, ceil_div(n, most))), unit);
}

// A tile at the lower or right edge of c, of which only rows×columns exist.
void multiply_edge(const GemmKernel& kernel, const RegisterTile& tile, int64_t rows, int64_t columns) {
  float sums[kMostTileElements];
  RegisterTile whole = tile;
  whole.c = sums;
  whole.c_stride = kernel.columns;
  if (tile.write == Write::go_on) {
    std::fill_n(sums, kernel.rows * kernel.columns, 0.0f);
    for (int64_t i = 0; i < rows; ++i) std::copy_n(tile.c + i * tile.c_stride, columns, sums + i * kernel.columns);
  } else {
    whole.write = Write::over;
  }
  whole.bias = nullptr;
  kernel.multiply(whole);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float value = sums[i * kernel.columns + j];
      float& at = tile.c[i * tile.c_stride + j];
      if (tile.write == Write::add) value += at;
      if (tile.bias != nullptr) value += tile.bias[j];
      at = value;
    }
}

// The part of k that counts for rows [i, i + rows) of c.
struct Span {
  int64_t begin, end;
};

Span span_of(const Gemm<float>& p, int64_t i, int64_t rows) {
  if (p.triangle == Triangle::a_lower) return {0, std::clamp<int64_t>(i + rows + p.diagonal, 0, p.k)};
  if (p.triangle == Triangle::a_upper) return {std::clamp<int64_t>(i - p.diagonal, 0, p.k), p.k};
  return {0, p.k};
}

// c = a·b for packed a and b: one block of the GEMM.
void multiply_packed(const Gemm<float>& p, const float* a, const float* b) {
  const GemmKernel& kernel = gemm_kernel();
  int64_t lines = ceil_div(kernel.columns * p.k, kFloatsPerLine * ceil_div(p.m, kernel.rows));
  for (int64_t j = 0; j < p.n; j += kernel.columns) {
    int64_t columns = std::min(kernel.columns, p.n - j);
    for (int64_t i = 0; i < p.m; i += kernel.rows) {
      if (p.triangle == Triangle::c_lower && j >= i + kernel.rows + p.diagonal) continue;
      Span span = span_of(p, i, kernel.rows);
      RegisterTile tile{.a = a + i * p.k + span.begin * kernel.rows,
                        .b = b + j * p.k + span.begin * kernel.columns,
                        .k = span.end - span.begin,
                        .columns = round_up(columns, kernel.lanes),
                        .c = p.c + i * p.c_stride + j,
                        .c_stride = p.c_stride,
                        .write = p.write,
                        .bias = p.bias != nullptr ? p.bias + j : nullptr,
                        .ahead = b + (j + kernel.columns) * p.k + i / kernel.rows * lines * kFloatsPerLine,
                        .ahead_lines = lines};
      if (i + kernel.rows <= p.m && tile.columns == columns)
        kernel.multiply(tile);
      else
        multiply_edge(kernel, tile, std::min(kernel.rows, p.m - i), columns);
    }
  }
}

// The part of p that multiplies columns [first, first + depth) of a; all but the first part add.
Gemm<float> depth_block(const Gemm<float>& p, int64_t first, int64_t depth) {
  Gemm<float> part = p;
  part.k = std::min(depth, p.k - first);
  part.a.data = p.a.at(0, first);
  part.b.data = p.b.at(first, 0);
  if (p.triangle == Triangle::a_lower) part.diagonal -= first;
  if (p.triangle == Triangle::a_upper) part.diagonal += first;
  if (first > 0) {
    if (p.write == Write::over) part.write = Write::add;
    part.bias = nullptr;
  }
  return part;
}

template <class T>
Gemm<T> tile_of(const Gemm<T>& p, int64_t i, int64_t rows, int64_t j, int64_t columns) {
  Gemm<T> tile = p;
  tile.m = std::min(rows, p.m - i);
  tile.n = std::min(columns, p.n - j);
  tile.a.data = p.a.at(i, 0);
  tile.b.data = p.b.at(0, j);
  tile.c = p.c + i * p.c_stride + j;
  if (p.bias != nullptr) tile.bias = p.bias + j;
  if (p.triangle == Triangle::c_lower) tile.diagonal += i - j;
  if (p.triangle == Triangle::a_lower) tile.diagonal += i;
  if (p.triangle == Triangle::a_upper) tile.diagonal -= i;
  return tile;
}

// In generation there are a row or two: each element of b is used so seldom that packing it would double the work.
bool has_few_rows(const Gemm<float>& p) {
  return p.m <= 4 && p.a.column_stride == 1 && p.few_rows == FewRows::faster && p.write != Write::go_on;
}

void multiply_few_rows(const Gemm<float>& p) {
  for (int64_t i = 0; i < p.m; ++i) {
    const float* a = p.a.at(i, 0);
    float* c = p.c + i * p.c_stride;
    if (p.write == Write::over) std::fill_n(c, p.n, 0.0f);
    if (p.bias != nullptr)
      for (int64_t j = 0; j < p.n; ++j) c[j] += p.bias[j];
    if (p.b.row_stride == 1)
      for (int64_t j = 0; j < p.n; ++j) c[j] += dot(a, p.b.at(0, j), p.k);
    else
      for (int64_t k = 0; k < p.k; ++k) add_scaled(p.b.at(k, 0), a[k], c, p.n);
  }
}

void pack_columns(const Gemm<float>& p, ThreadTeam& team, float* to) {
  const GemmKernel& kernel = gemm_kernel();
  for_blocks(team, p.n, kPanelsPerTask * kernel.columns, [&](int64_t begin, int64_t end) {
    Matrix<float> columns = p.b.transposed();
    columns.data = columns.at(begin, 0);
    kernel.pack({columns, end - begin, p.k, kernel.columns, to + begin * p.k});
  });
}

// k fits the L1 cache, n the packed columns.
void multiply_block(const Gemm<float>& p, ThreadTeam& team, std::byte* workspace) {
  const GemmKernel& kernel = gemm_kernel();
  int64_t scratch = packed_a_bytes(p.k);
  float* b = reinterpret_cast<float*>(workspace + team.size() * scratch);
  pack_columns(p, team, b);
  int64_t rows = equal_blocks(p.m, std::clamp(ceil_div(p.m, 4 * team.size()), kFewestRows, kGemmRows), kernel.rows);
  int64_t down = ceil_div(p.m, rows);
  int64_t across = std::clamp<int64_t>(p.n / kFewestColumns, 1, ceil_div(2 * team.size(), down));
  int64_t columns = equal_blocks(p.n, ceil_div(p.n, across), kernel.columns);
  across = ceil_div(p.n, columns);
  team.parallel_for(down * across, [&](int64_t task, int thread) {
    float* a = reinterpret_cast<float*>(workspace + thread * scratch);
    int64_t j = task % across * columns;
    Gemm<float> tile = tile_of(p, task / across * rows, rows, j, columns);
    kernel.pack({tile.a, tile.m, tile.k, kernel.rows, a});
    multiply_packed(tile, a, b + j * p.k);
  });
}

void blas(const Gemm<double>& p) {
  auto order = [](const Matrix<double>& x) { return x.column_stride == 1 ? CblasNoTrans : CblasTrans; };
  // The stride of a single row, or of no element at all, says nothing; BLAS still wants the width at least.
  auto stride = [](const Matrix<double>& x, int64_t rows, int64_t columns) {
    bool plain = x.column_stride == 1;
    return static_cast<int>(std::max({plain ? x.row_stride : x.column_stride, plain ? columns : rows, int64_t{1}}));
  };
  cblas_dgemm(CblasRowMajor, order(p.a), order(p.b), static_cast<int>(p.m), static_cast<int>(p.n),
              static_cast<int>(p.k), 1, p.a.data, stride(p.a, p.m, p.k), p.b.data, stride(p.b, p.k, p.n),
              p.write == Write::over ? 0 : 1, p.c, static_cast<int>(std::max({p.c_stride, p.n, int64_t{1}})));
  if (p.bias == nullptr) return;
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) p.c[i * p.c_stride + j] += p.bias[j];
}

}  // namespace

void multiply(const Gemm<float>& p, std::byte* scratch) {
  if (has_few_rows(p)) return multiply_few_rows(p);
  const GemmKernel& kernel = gemm_kernel();
  float* a = reinterpret_cast<float*>(scratch);
  float* b = reinterpret_cast<float*>(scratch + packed_a_bytes(p.k));
  int64_t depth = equal_blocks(p.k, gemm_kernel().depth, 1), rows = equal_blocks(p.m, kGemmRows, kernel.rows);
  int64_t columns = equal_blocks(p.n, kGemmColumns, kernel.columns);
  for (int64_t first = 0; first < p.k; first += depth) {
    Gemm<float> slab = depth_block(p, first, depth);
    for (int64_t j = 0; j < p.n; j += columns) {
      Gemm<float> strip = tile_of(slab, 0, p.m, j, columns);
      kernel.pack({strip.b.transposed(), strip.n, strip.k, kernel.columns, b});
      for (int64_t i = 0; i < p.m; i += rows) {
        Gemm<float> tile = tile_of(strip, i, rows, 0, strip.n);
        kernel.pack({tile.a, tile.m, tile.k, kernel.rows, a});
        multiply_packed(tile, a, b);
      }
    }
  }
}

void multiply(const Gemm<double>& p, std::byte*) {
  blas(p);
}

void multiply(const Gemm<float>& p, ThreadTeam& team, std::byte* workspace) {
  if (has_few_rows(p))
    return for_blocks(team, p.n, rows_per_task(p.k),
                      [&](int64_t begin, int64_t end) { multiply_few_rows(tile_of(p, 0, p.m, begin, end - begin)); });
  int64_t depth = equal_blocks(p.k, gemm_kernel().depth, 1),
          columns = equal_blocks(p.n, kGemmColumns, gemm_kernel().columns);
  for (int64_t first = 0; first < p.k; first += depth) {
    Gemm<float> slab = depth_block(p, first, depth);
    for (int64_t j = 0; j < p.n; j += columns) multiply_block(tile_of(slab, 0, p.m, j, columns), team, workspace);
  }
}

void multiply(const Gemm<double>& p, ThreadTeam& team, std::byte*) {
  constexpr int64_t kTile = 128;
  int64_t across = ceil_div(p.n, kTile);
  team.parallel_for(ceil_div(p.m, kTile) * across, [&](int64_t task, int) {
    blas(tile_of(p, task / across * kTile, kTile, task % across * kTile, kTile));
  });
}

// A product, sums over the depth of a block, of blocks, with what c held and with a bias.
int64_t roundings(const Gemm<float>& p) {
  if (p.k == 0) return 2;
  int64_t depth = has_few_rows(p) ? p.k : equal_blocks(p.k, gemm_kernel().depth, 1);
  return depth + ceil_div(p.k, depth) + 2;
}

int64_t roundings(const Gemm<double>& p) {
  return p.k + 3;
}

void use_single_threaded_blas() {
  openblas_set_num_threads(1);
}

}  // namespace sextant::cpu
