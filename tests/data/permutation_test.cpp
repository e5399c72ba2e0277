#include "data/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace sextant {
namespace {

std::vector<int64_t> table_of(int64_t n, uint64_t key) {
  Permutation permutation(n, key);
  std::vector<int64_t> table(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) table[static_cast<size_t>(i)] = permutation(i);
  return table;
}

bool is_bijection(std::vector<int64_t> table) {
  std::sort(table.begin(), table.end());
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i] != static_cast<int64_t>(i)) return false;
  return true;
}

TEST(Permutation, IsABijection) {
  for (int64_t n = 1; n <= 600; ++n)
    for (uint64_t key : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) ASSERT_TRUE(is_bijection(table_of(n, key))) << n;
  for (int64_t n : {999, 1000, 1024, 65535, 65536, 65537, 100003}) ASSERT_TRUE(is_bijection(table_of(n, 42))) << n;
}

// Without a table of them all: indices of a huge range must at least differ and stay inside.
TEST(Permutation, HugeRanges) {
  for (int64_t n : {(int64_t{1} << 40) + 1, int64_t{1} << 62}) {
    Permutation permutation(n, 5);
    std::vector<int64_t> images;
    for (int64_t i = 0; i < 20000; ++i) images.push_back(permutation(i)), images.push_back(permutation(n - 1 - i));
    EXPECT_LT(*std::max_element(images.begin(), images.end()), n);
    EXPECT_GE(*std::min_element(images.begin(), images.end()), 0);
    std::sort(images.begin(), images.end());
    EXPECT_EQ(std::adjacent_find(images.begin(), images.end()), images.end());
  }
}

TEST(Permutation, OutsideIsABug) {
  EXPECT_THROW(Permutation(0, 1), Bug);
  EXPECT_THROW(Permutation(10, 1)(10), Bug);
  EXPECT_THROW(Permutation(10, 1)(-1), Bug);
}

// From a second implementation of the formula. The order is part of a run's identity: if these numbers change, older
// runs no longer resume exactly.
TEST(Permutation, IsTheSameForever) {
  EXPECT_EQ(table_of(8, 1), (std::vector<int64_t>{0, 1, 7, 4, 3, 6, 5, 2}));
  EXPECT_EQ(table_of(11, 0x123456789abcdef), (std::vector<int64_t>{0, 10, 1, 8, 6, 5, 7, 3, 2, 9, 4}));
}

// All 24 orders of four, about equally often: chi-square with 23 degrees of freedom exceeds 49.7 once in a thousand.
TEST(Permutation, EveryOrderOfFewIsAsLikely) {
  std::map<std::vector<int64_t>, int> seen;
  const int keys = 24000;
  for (int key = 0; key < keys; ++key) ++seen[table_of(4, static_cast<uint64_t>(key))];
  ASSERT_EQ(seen.size(), 24u);
  double chi_square = 0;
  for (const auto& [order, count] : seen) chi_square += std::pow(count - keys / 24.0, 2) / (keys / 24.0);
  EXPECT_LT(chi_square, 49.7);
}

TEST(Permutation, LooksRandom) {
  const int64_t n = 20000;
  double fixed = 0, neighbours = 0, cross = 0;
  const int keys = 50;
  for (uint64_t key = 0; key < keys; ++key) {
    auto table = table_of(n, key);
    for (int64_t i = 0; i < n; ++i) {
      double here = static_cast<double>(table[static_cast<size_t>(i)]) / static_cast<double>(n) - 0.5;
      double next = static_cast<double>(table[static_cast<size_t>((i + 1) % n)]) / static_cast<double>(n) - 0.5;
      fixed += table[static_cast<size_t>(i)] == i;
      neighbours += here * next;
      cross += here * (static_cast<double>(i) / static_cast<double>(n) - 0.5);
    }
  }
  // A uniform value on [-1/2, 1/2] has variance 1/12; correlations of 10^6 pairs have deviation 0.001.
  EXPECT_NEAR(fixed / keys, 1, 0.6);
  EXPECT_NEAR(12 * neighbours / (n * keys), 0, 0.004);
  EXPECT_NEAR(12 * cross / (n * keys), 0, 0.004);
}

// Where i goes, on a coarse grid of (i, image): 255 or so degrees of freedom, deviation √(2·255) ≈ 23.
TEST(Permutation, SpreadsOverAGrid) {
  const int64_t n = 160000, cells = 16;
  std::vector<int> counts(cells * cells, 0);
  auto table = table_of(n, 77);
  for (int64_t i = 0; i < n; ++i)
    ++counts[static_cast<size_t>(i * cells / n * cells + table[static_cast<size_t>(i)] * cells / n)];
  double expected = static_cast<double>(n) / (cells * cells), chi_square = 0;
  for (int count : counts) chi_square += std::pow(count - expected, 2) / expected;
  EXPECT_GT(chi_square, 225 - 4 * 23);  // rows and columns are exact, which leaves 15 · 15 degrees of freedom
  EXPECT_LT(chi_square, 225 + 4 * 23);
}

TEST(Permutation, KeysGiveUnrelatedOrders) {
  const int64_t n = 10000;
  auto a = table_of(n, 1), b = table_of(n, 2);
  int64_t same = 0;
  double correlation = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    same += a[i] == b[i];
    correlation += (static_cast<double>(a[i]) / n - 0.5) * (static_cast<double>(b[i]) / n - 0.5) * 12 / n;
  }
  EXPECT_LT(same, 8);
  EXPECT_NEAR(correlation, 0, 0.04);
}

}  // namespace
}  // namespace sextant
