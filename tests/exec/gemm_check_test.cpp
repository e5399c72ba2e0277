// Checks of matrix products: a right product passes whatever its numbers are, and a flipped bit of weight is found.
#include "exec/cpu/kernels/gemm_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "targets/gemm_check_sizes.h"

namespace sextant::cpu {
namespace {

enum class Stored { rows, columns };

struct Product {
  int64_t m = 40, n = 72, k = 56;
  Stored a = Stored::rows, b = Stored::rows;
  Write write = Write::over;
  bool bias = false;
  int flips = 0;
  int bit = 4;
  uint64_t seed = 1;
};

template <class T>
Matrix<T> stored(const std::vector<T>& data, int64_t rows, int64_t columns, Stored order) {
  return order == Stored::rows ? Matrix<T>{data.data(), columns} : Matrix<T>{data.data(), rows}.transposed();
}

using Draw = std::function<double(const Random&, uint64_t)>;

double normal_number(const Random& random, uint64_t i) {
  return random.normal(i);
}

template <class T>
std::vector<T> drawn_numbers(int64_t count, uint64_t seed, uint64_t stream, const Draw& draw) {
  Random random(seed, "gemm_check", stream);
  std::vector<T> drawn(static_cast<size_t>(count));
  for (size_t i = 0; i < drawn.size(); ++i) drawn[i] = static_cast<T>(draw(random, i));
  return drawn;
}

// 64-byte blocks, so that both scratches are aligned and the sanitizer sees a step beyond their end.
struct alignas(64) AlignedLine {
  std::byte bytes[64];
};

struct Judged {
  bool found;
  GemmFault fault;
};

enum class Team { threads, task };

template <class T>
Judged check(const Product& p, const Draw& draw = normal_number, Team by = Team::threads) {
  std::vector<T> a = drawn_numbers<T>(p.m * p.k, p.seed, 1, draw), b = drawn_numbers<T>(p.k * p.n, p.seed, 2, draw),
                 c = drawn_numbers<T>(p.m * p.n, p.seed, 3, draw), bias = drawn_numbers<T>(p.n, p.seed, 4, draw);
  Gemm<T> gemm{.m = p.m,
               .n = p.n,
               .k = p.k,
               .a = stored(a, p.m, p.k, p.a),
               .b = stored(b, p.k, p.n, p.b),
               .c = c.data(),
               .c_stride = p.n,
               .write = p.write,
               .bias = p.bias ? bias.data() : nullptr};
  static ThreadTeam team(2);
  std::vector<AlignedLine> workspace(static_cast<size_t>(multiply_workspace(p.n, p.k, team.size()) / 64 + 1));
  std::vector<AlignedLine> scratch(static_cast<size_t>(GemmCheckSizes(p.m, p.n, p.k).bytes() / 64));
  GemmCheck check{.signs = {p.seed, "signs"},
                  .scratch = scratch.data()->bytes,
                  .verifies = true,
                  .flips = p.flips,
                  .flipped_bit = p.bit};
  Attrs attrs;
  KernelCall call{{}, {}, attrs, workspace.data()->bytes, team, 0, SumState::running, &check};
  if (by == Team::threads)
    multiply_checked(gemm, call, call.workspace);
  else
    multiply_checked(gemm, call, call.workspace, check.scratch);
  return {check.found, check.fault};
}

std::vector<Product> all_products() {
  std::vector<Product> all;
  uint64_t seed = 1;
  struct Size {
    int64_t m, n, k;
  };
  for (Size size : {Size{1, 1, 1}, {3, 65, 50}, {9, 13, 5}, {17, 33, 40}, {6, 9, 900}})
    for (Stored a : {Stored::rows, Stored::columns})
      for (Stored b : {Stored::rows, Stored::columns})
        for (Write write : {Write::over, Write::add, Write::go_on})
          for (bool bias : {false, true}) all.push_back({size.m, size.n, size.k, a, b, write, bias, 0, 4, ++seed});
  return all;
}

const std::vector<std::pair<const char*, Draw>> kWildNumbers = {
    {"normal", normal_number},
    {"all of one sign", [](const Random& random, uint64_t i) { return 1 + 0.1 * random.uniform(i); }},
    {"one size", [](const Random&, uint64_t) { return 0.1; }},
    {"many sizes",
     [](const Random& random, uint64_t i) { return random.normal(i) * std::pow(10, random.below(i, 20) - 10.0); }},
    {"great ones that cancel",
     [](const Random& random, uint64_t i) { return (i % 2 != 0 ? 1e6 : -1e6) + random.normal(i); }},
    {"too small to be normal", [](const Random& random, uint64_t i) { return random.normal(i) * 1e-21; }},
    {"zero", [](const Random&, uint64_t) { return 0.0; }},
    {"mostly zero", [](const Random& random, uint64_t i) { return i % 97 == 0 ? random.normal(i) : 0.0; }},
};

TEST(GemmCheck, ARightProductPasses) {
  for (const auto& [name, draw] : kWildNumbers)
    for (const Product& p : all_products())
      for (Team by : {Team::threads, Team::task}) {
        auto where = [&] { return fmt::format("{}: {} x {} x {}, write {}", name, p.m, p.n, p.k, int(p.write)); };
        EXPECT_FALSE(check<float>(p, draw, by).found) << where();
        if (p.write != Write::go_on) {  // of f32 alone
          EXPECT_FALSE(check<double>(p, draw, by).found) << where();
        }
      }
}

TEST(GemmCheck, WhatIsNotFiniteSaysNothing) {
  for (double bad : {std::numeric_limits<double>::infinity(), std::nan("")})
    for (Write write : {Write::over, Write::add}) {
      Draw one_bad = [&](const Random& random, uint64_t i) { return i == 5 ? bad : random.normal(i); };
      EXPECT_FALSE(check<float>({.write = write}, one_bad).found);
      Draw overflowing = [](const Random& random, uint64_t i) { return random.normal(i) * 1e25; };
      EXPECT_FALSE(check<float>({.write = write}, overflowing).found);
    }
}

// All bits of the exponent, and the first eight of the mantissa.
TEST(GemmCheck, AFlippedBitIsFound) {
  for (Stored a : {Stored::rows, Stored::columns})
    for (Stored b : {Stored::rows, Stored::columns})
      for (int bit = -8; bit < 8; ++bit) {
        Judged judged = check<float>({.a = a, .b = b, .bias = true, .flips = 1, .bit = bit});
        EXPECT_TRUE(judged.found) << bit;
        EXPECT_GE(judged.fault.column, 0);
        EXPECT_GT(std::fabs(judged.fault.got - judged.fault.expected), judged.fault.allowed);
        EXPECT_EQ(judged.fault.verdict, FaultVerdict::transient);
      }
}

// The values that were added to are overwritten: the sum of the row must show the flip.
TEST(GemmCheck, AFlippedBitIsFoundInWhatIsAddedUp) {
  for (Write write : {Write::add, Write::go_on})
    for (int bit = -4; bit < 8; ++bit)
      EXPECT_TRUE(check<float>({.a = Stored::columns, .write = write, .flips = 1, .bit = bit}).found) << bit;
}

TEST(GemmCheck, AFlippedBitIsFoundInLargeProducts) {
  for (int bit = -5; bit < 8; ++bit)
    EXPECT_TRUE(check<float>({.m = 8, .n = 512, .k = 512, .b = Stored::columns, .flips = 1, .bit = bit}).found) << bit;
}

TEST(GemmCheck, AFaultThatComesAgainIsPersistent) {
  Judged judged = check<float>({.m = 8, .flips = 2});
  ASSERT_TRUE(judged.found);
  EXPECT_EQ(judged.fault.verdict, FaultVerdict::persistent);
}

TEST(GemmCheck, WhatIsCheckedHasTheSameBits) {
  Product p{.bias = true};
  std::vector<float> a = drawn_numbers<float>(p.m * p.k, 1, 1, normal_number),
                     b = drawn_numbers<float>(p.k * p.n, 1, 2, normal_number);
  std::vector<float> plain(static_cast<size_t>(p.m * p.n)), checked = plain;
  ThreadTeam team(2);
  std::vector<AlignedLine> workspace(static_cast<size_t>(multiply_workspace(p.n, p.k, team.size()) / 64 + 1));
  std::vector<AlignedLine> scratch(static_cast<size_t>(GemmCheckSizes(p.m, p.n, p.k).bytes() / 64));
  GemmCheck check{.signs = {1, "signs"}, .scratch = scratch.data()->bytes, .verifies = true};
  Attrs attrs;
  Gemm<float> gemm{
      .m = p.m, .n = p.n, .k = p.k, .a = {a.data(), p.k}, .b = {b.data(), p.n}, .c = plain.data(), .c_stride = p.n};
  multiply(gemm, team, workspace.data()->bytes);
  gemm.c = checked.data();
  multiply_checked(gemm, {{}, {}, attrs, workspace.data()->bytes, team, 0, SumState::running, &check},
                   workspace.data()->bytes);
  EXPECT_EQ(plain, checked);
}

}  // namespace
}  // namespace sextant::cpu
