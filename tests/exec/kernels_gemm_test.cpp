// Our f32 GEMM against one written out, over every shape of operand, edge and epilogue.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "exec/cpu/kernels/gemm.h"

namespace sextant::cpu {
namespace {

enum class Order { rows, columns };  // which neighbours are adjacent in memory

std::vector<float> draw(int64_t n, uint64_t stream) {
  Random random(3, "gemm", stream);
  std::vector<float> numbers(static_cast<size_t>(n));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(random.normal(i));
  return numbers;
}

Matrix<float> matrix(const std::vector<float>& data, int64_t rows, int64_t columns, Order order) {
  return order == Order::rows ? Matrix<float>{data.data(), columns} : Matrix<float>{data.data(), rows}.transposed();
}

// Scratch that ends where it was asked to end: the address sanitizer sees a step beyond.
struct Scratch {
  explicit Scratch(int64_t bytes)
      : data(static_cast<std::byte*>(::operator new[](static_cast<size_t>(bytes), std::align_val_t{64}))) {}
  ~Scratch() { ::operator delete[](data, std::align_val_t{64}); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::byte* data;
};

struct Shape {
  int64_t m, n, k;
};

struct Case {
  Shape shape;
  Order a, b;
  Write write;
  bool bias;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (Shape shape : {Shape{1, 1, 1},
                      {1, 77, 50},
                      {3, 100, 129},
                      {5, 7, 3},
                      {8, 12, 16},
                      {8, 24, 1},
                      {9, 13, 5},
                      {64, 64, 64},
                      {130, 65, 33},
                      {300, 61, 20},
                      {31, 100, 700},
                      {6, 4200, 3}})
    for (Order a : {Order::rows, Order::columns})
      for (Order b : {Order::rows, Order::columns})
        for (Write write : {Write::over, Write::add})
          for (bool bias : {false, true}) cases.push_back({shape, a, b, write, bias});
  return cases;
}

TEST(Gemm, AgreesWithTheDefinition) {
  for (const Case& c : all_cases()) {
    auto [m, n, k] = c.shape;
    std::vector<float> a = draw(m * k, 1), b = draw(k * n, 2), before = draw(m * n, 3), bias = draw(n, 4);
    Gemm<float> gemm{.m = m,
                     .n = n,
                     .k = k,
                     .a = matrix(a, m, k, c.a),
                     .b = matrix(b, k, n, c.b),
                     .c = nullptr,
                     .c_stride = n,
                     .write = c.write,
                     .bias = c.bias ? bias.data() : nullptr};
    std::vector<float> alone = before, together = before;
    Scratch scratch(multiply_scratch(n, k)), workspace(multiply_workspace(n, k, 3));
    gemm.c = alone.data();
    multiply(gemm, scratch.data);
    gemm.c = together.data();
    ThreadTeam team(3);
    multiply(gemm, team, workspace.data);
    EXPECT_EQ(alone, together);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        size_t at = static_cast<size_t>(i * n + j);
        double sum = 0, size = 0;
        for (int64_t p = 0; p < k; ++p) {
          double term = static_cast<double>(*gemm.a.at(i, p)) * static_cast<double>(*gemm.b.at(p, j));
          sum += term;
          size += std::abs(term);
        }
        if (c.bias) sum += static_cast<double>(bias[static_cast<size_t>(j)]);
        if (c.write == Write::add) sum += static_cast<double>(before[at]);
        ASSERT_NEAR(static_cast<double>(alone[at]), sum, 1e-6 * (size + 4))
            << m << "x" << n << "x" << k << " at " << i << ", " << j;
      }
  }
}

// Of a triangular GEMM only what counts is compared: c beyond the diagonal may be anything.
TEST(Gemm, TrianglesLeaveOutOnlyZeros) {
  for (Triangle triangle : {Triangle::c_lower, Triangle::a_lower, Triangle::a_upper})
    for (int64_t diagonal : {-300, -9, 0, 5, 64, 700}) {
      constexpr int64_t m = 150, n = 90, k = 500;
      std::vector<float> a = draw(m * k, 1), b = draw(k * n, 2);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t p = 0; p < k; ++p)
          if ((triangle == Triangle::a_lower && p > i + diagonal) ||
              (triangle == Triangle::a_upper && p < i - diagonal))
            a[static_cast<size_t>(i * k + p)] = 0;
      std::vector<float> whole(m * n), part(m * n);
      Gemm<float> gemm{
          .m = m, .n = n, .k = k, .a = {a.data(), k}, .b = {b.data(), n}, .c = whole.data(), .c_stride = n};
      Scratch scratch(multiply_scratch(n, k));
      multiply(gemm, scratch.data);
      gemm.triangle = triangle;
      gemm.diagonal = diagonal;
      gemm.c = part.data();
      multiply(gemm, scratch.data);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n && (triangle != Triangle::c_lower || j <= i + diagonal); ++j)
          ASSERT_EQ(part[static_cast<size_t>(i * n + j)], whole[static_cast<size_t>(i * n + j)]) << i << ", " << j;
    }
}

TEST(Gemm, WritesOnlyInsideC) {
  constexpr int64_t m = 13, n = 17, k = 21, stride = 40;
  std::vector<float> a = draw(m * k, 1), b = draw(k * n, 2), c(m * stride, 7.0f);
  Scratch scratch(multiply_scratch(n, k));
  multiply(
      Gemm<float>{.m = m, .n = n, .k = k, .a = {a.data(), k}, .b = {b.data(), n}, .c = c.data(), .c_stride = stride},
      scratch.data);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = n; j < stride; ++j) EXPECT_EQ(c[static_cast<size_t>(i * stride + j)], 7.0f);
}

}  // namespace
}  // namespace sextant::cpu
