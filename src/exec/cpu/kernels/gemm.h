// GEMMs. `multiply` on one thread is for use inside tasks; with a team, the tiles of c are the tasks.
// Either wants scratch, aligned to 64 bytes: multiply_scratch and multiply_workspace bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/threads.h"
#include "targets/cpu/gemm_sizes.h"

namespace sextant::cpu {

// Element (i, j) stands at data[i * row_stride + j * column_stride]; one of the strides is 1.
template <class T>
struct Matrix {
  const T* data;
  int64_t row_stride;
  int64_t column_stride = 1;

  const T* at(int64_t i, int64_t j) const { return data + i * row_stride + j * column_stride; }
  Matrix transposed() const { return {data, column_stride, row_stride}; }
};

enum class Write {
  over,
  add,
  // As add, but the sum begins with what c holds: a product whose depth is cut into several, added one after the other,
  // has the same bits as the whole (f32).
  go_on,
};

// With few rows, products take another way than with many, whose sums over k have another order.
enum class FewRows {
  faster,
  as_many,  // a row of c has the same bits whatever rows stand beside it
};

// Half of causal attention's work is not needed. Of the named matrix only elements (i, j) on one side of a diagonal
// count: lower means j <= i + diagonal, upper j >= i − diagonal. Beyond it c may be left unwritten, and a must be zero.
enum class Triangle { none, c_lower, a_lower, a_upper };

// c = a·b + bias, or that added onto c. a is m×k, b is k×n, bias (n numbers, or null) is added to every row.
template <class T>
struct Gemm {
  int64_t m, n, k;
  Matrix<T> a, b;
  T* c;
  int64_t c_stride;
  Write write = Write::over;
  const T* bias = nullptr;
  Triangle triangle = Triangle::none;
  int64_t diagonal = 0;
  FewRows few_rows = FewRows::faster;
};

void multiply(const Gemm<float>& gemm, std::byte* scratch);
void multiply(const Gemm<double>& gemm, std::byte* scratch);

void multiply(const Gemm<float>& gemm, ThreadTeam& team, std::byte* workspace);
void multiply(const Gemm<double>& gemm, ThreadTeam& team, std::byte* workspace);

// How many roundings a term of an element of c passes through at most: of its product, and of every sum it is part of.
int64_t roundings(const Gemm<float>& gemm);
int64_t roundings(const Gemm<double>& gemm);

// OpenBLAS' own threads would compete with our team. Called once, before the first kernel.
void use_single_threaded_blas();

}  // namespace sextant::cpu
