// AdamW with states in bf16 and in 8 bits, and with weights rounded at random, against adamw in f64 followed by
// rounding that is written out here.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "base/bf16.h"
#include "base/dynamic_map.h"
#include "base/rng.h"
#include "exec/kernel_runner.h"
#include "exec/rounding_bits.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.95, kEps = 1e-8, kDecay = 0.1, kLr = 0.02;

Attrs adamw_attrs() {
  return {{"beta1", kBeta1}, {"beta2", kBeta2}, {"eps", kEps}, {"weight_decay", kDecay}};
}

struct Element {
  double p, m, v;
};

Element stepped(const Element& before, double g, int step) {
  double m = kBeta1 * before.m + (1 - kBeta1) * g, v = kBeta2 * before.v + (1 - kBeta2) * g * g;
  double m_hat = m / (1 - std::pow(kBeta1, step)), v_hat = v / (1 - std::pow(kBeta2, step));
  return {before.p - kLr * (m_hat / (std::sqrt(v_hat) + kEps) + kDecay * before.p), m, v};
}

// 300 columns in blocks of 256: the second block of each row has 44.
constexpr int64_t kRows = 3, kColumns = 300, kBlock = 256, kBlocks = 2;

struct CodedRun {
  Numbers p, g, m, v, m_absmax, v_absmax;

  CodedRun() {
    Random random(3, "coded");
    for (size_t i = 0; i < static_cast<size_t>(kRows * kColumns); ++i) {
      p.push_back(random.normal(4 * i));
      g.push_back(static_cast<float>(random.normal(4 * i + 1) * std::pow(10, -4 * random.uniform(4 * i + 2))));
      m.push_back(static_cast<double>(random.below(4 * i + 3, 256)));
      v.push_back(static_cast<double>(1 + random.below(9 * i, 255)));
    }
    m_absmax = {0.5, 0, 2, 1e-3, 1, 7};  // the second block holds zeros
    v_absmax = {0.25, 0, 1, 1e-6, 3, 4};
  }

  std::vector<Numbers> run(DType real, const Attrs& more = {}) const {
    Attrs attrs = adamw_attrs();
    attrs.set("block", kBlock);
    for (const auto& [name, value] : more.entries()) attrs.set(name, value);
    GlobalShape shape{kRows, kColumns}, scales{kRows, kBlocks};
    return run_kernel(
        {.def = ops::adamw_int8,
         .attrs = attrs,
         .types = {f64(shape), f64(shape), u8(shape), u8(shape), f64({}), f64({}), i32({}), f64(scales), f64(scales)},
         .inputs = {p, g, m, v, {kLr}, {1}, {7}, m_absmax, v_absmax},
         .real = real,
         .threads = 2});
  }

  size_t block_of(size_t i) const {
    auto columns = static_cast<size_t>(kColumns);
    return i / columns * kBlocks + i % columns / kBlock;
  }
};

TEST(AdamwInt8, IsAdamwBetweenDecodingAndEncoding) {
  CodedRun coded;
  std::vector<Numbers> out = coded.run(DType::f64);
  std::vector<Element> after;
  Numbers m_absmax(coded.m_absmax.size()), v_absmax(coded.v_absmax.size());
  for (size_t i = 0; i < coded.p.size(); ++i) {
    size_t block = coded.block_of(i);
    Element before{coded.p[i],
                   static_cast<double>(kSignedMap.value[static_cast<size_t>(coded.m[i])]) * coded.m_absmax[block],
                   static_cast<double>(kPositiveMap.value[static_cast<size_t>(coded.v[i])]) * coded.v_absmax[block]};
    after.push_back(stepped(before, coded.g[i], 7));
    m_absmax[block] = std::max(m_absmax[block], std::abs(after[i].m));
    v_absmax[block] = std::max(v_absmax[block], after[i].v);
  }
  for (size_t block = 0; block < m_absmax.size(); ++block) {
    EXPECT_NEAR(out[3][block], m_absmax[block], 1e-7 * m_absmax[block]);
    EXPECT_NEAR(out[4][block], v_absmax[block], 1e-7 * v_absmax[block]);
  }
  for (size_t i = 0; i < after.size(); ++i) {
    size_t block = coded.block_of(i);
    EXPECT_NEAR(out[0][i], after[i].p, 1e-12);
    auto distance = [](const DynamicMap& map, double code, double x) {
      return std::abs(static_cast<double>(map.value[static_cast<size_t>(code)]) - x);
    };
    double m = after[i].m / m_absmax[block], v = after[i].v / v_absmax[block];
    for (int code = 0; code < 256; ++code) {  // none is nearer than the code that was written
      EXPECT_LE(distance(kSignedMap, out[1][i], m), distance(kSignedMap, code, m) + 1e-7) << i;
      if (code == 0 && out[2][i] == 1) continue;  // 0 may be nearer, and is not taken
      EXPECT_LE(distance(kPositiveMap, out[2][i], v), distance(kPositiveMap, code, v) + 1e-7) << i;
    }
    EXPECT_GT(out[2][i], 0) << "a second moment above 0 became 0";
  }
}

TEST(AdamwInt8, SkipsWhenScaleIsZero) {
  CodedRun coded;
  GlobalShape shape{kRows, kColumns}, scales{kRows, kBlocks};
  Attrs attrs = adamw_attrs();
  attrs.set("block", kBlock);
  std::vector<Numbers> out = run_kernel(
      {.def = ops::adamw_int8,
       .attrs = attrs,
       .types = {f64(shape), f64(shape), u8(shape), u8(shape), f64({}), f64({}), i32({}), f64(scales), f64(scales)},
       .inputs = {coded.p, coded.g, coded.m, coded.v, {kLr}, {0}, {7}, coded.m_absmax, coded.v_absmax}});
  EXPECT_EQ(out[0], coded.p);
  EXPECT_EQ(out[1], coded.m);
  EXPECT_EQ(out[2], coded.v);
  EXPECT_EQ(out[3], coded.m_absmax);
  EXPECT_EQ(out[4], coded.v_absmax);
}

// Every element lies between the two bf16 numbers around what adamw gives, and the means over many elements agree.
void expect_rounded_around(const Numbers& found, const Numbers& exact, const char* what) {
  double error = 0, size = 0;
  int moved = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    auto x = static_cast<float>(exact[i]);
    EXPECT_EQ(found[i], static_cast<double>(bf16_value(bf16_bits(static_cast<float>(found[i]))))) << what;
    EXPECT_NEAR(found[i], exact[i], std::abs(exact[i]) / 128) << what;
    moved += found[i] != static_cast<double>(bf16_value(bf16_bits(x)));
    error += (found[i] - exact[i]) / std::abs(exact[i]);
    size += std::pow((found[i] - exact[i]) / exact[i], 2);
  }
  EXPECT_GT(moved, static_cast<int>(exact.size() / 10)) << what << ": not rounded at random";
  EXPECT_LT(std::abs(error), 4 * std::sqrt(size)) << what << ": biased";
}

TEST(AdamwRounded, RoundsToNeighboursWithoutBias) {
  GlobalShape shape{40, 250};
  auto count = static_cast<size_t>(shape.count());
  Random random(4, "rounded");
  Numbers p(count), g(count), m(count), v(count);
  for (size_t i = 0; i < count; ++i) {
    p[i] = random.normal(4 * i);
    g[i] = random.normal(4 * i + 1);
    m[i] = static_cast<double>(bf16_value(bf16_bits(static_cast<float>(random.normal(4 * i + 2)))));
    v[i] = static_cast<double>(bf16_value(bf16_bits(static_cast<float>(random.uniform(4 * i + 3)))));
  }
  Attrs attrs = adamw_attrs();
  attrs.set("key", int64_t{12345});
  attrs.set("round_weight", int64_t{1});
  // From this row of the tensor on.
  auto run_from = [&](int64_t row, double step) {
    GlobalShape part{shape[0] - row, shape[1]};
    attrs.set("first_row", row);
    auto rows = [&](const Numbers& whole) { return Numbers(whole.begin() + row * shape[1], whole.end()); };
    TensorType state{DType::bf16, part};
    return run_kernel({.def = ops::adamw_rounded,
                       .attrs = attrs,
                       .types = {f64(part), f64(part), state, state, f64({}), f64({}), i32({})},
                       .inputs = {rows(p), rows(g), rows(m), rows(v), {kLr}, {1}, {step}},
                       .real = DType::f32,
                       .threads = 2});
  };
  auto run_at = [&](double step) { return run_from(0, step); };
  std::vector<Numbers> out = run_at(3);
  Numbers exact[3] = {Numbers(count), Numbers(count), Numbers(count)};
  for (size_t i = 0; i < count; ++i) {
    Element after = stepped({p[i], m[i], v[i]}, g[i], 3);
    exact[0][i] = after.p, exact[1][i] = after.m, exact[2][i] = after.v;
  }
  expect_rounded_around(out[0], exact[0], "weight");
  expect_rounded_around(out[1], exact[1], "first moment");
  expect_rounded_around(out[2], exact[2], "second moment");
  EXPECT_EQ(run_at(3), out);
  EXPECT_NE(run_at(4)[1], out[1]);
  // Rows of a part draw what they draw in the whole tensor, bit for bit.
  for (int64_t row : {int64_t{1}, int64_t{17}, shape[0] - 1}) {
    std::vector<Numbers> part = run_from(row, 3);
    for (size_t output = 0; output < out.size(); ++output)
      EXPECT_EQ(part[output], Numbers(out[output].begin() + row * shape[1], out[output].end())) << "from row " << row;
  }
}

// Bits that two elements, or two of what is rounded, shared would make their errors add up.
TEST(RoundingWordsTest, NobodySharesBits) {
  constexpr int64_t kPlaces = 24;
  std::set<std::array<uint32_t, 3>> triples;
  int64_t drawn = 0, equal = 0;
  std::vector<uint32_t> all;
  for (int64_t key : {1, 2})
    for (int64_t step : {1, 2, 3})
      for (int64_t row = 0; row < kPlaces; ++row)
        for (int64_t column = 0; column < kPlaces; ++column) {
          RoundingBits bits = RoundingWords(Attrs{{"key", key}}, step).at({row, column});
          triples.insert({bits.first_moment, bits.second_moment, bits.weight});
          for (uint32_t one : {bits.first_moment, bits.second_moment, bits.weight}) all.push_back(one);
          ++drawn;
        }
  EXPECT_EQ(std::ssize(triples), drawn);
  // 16 bits each: neighbours of any kind are equal by chance only.
  for (size_t distance = 1; distance <= 6; ++distance)
    for (size_t i = distance; i < all.size(); ++i) equal += all[i] == all[i - distance] ? 1 : 0;
  EXPECT_LT(equal, 20);
  for (uint32_t one : all) ASSERT_LT(one, 0x10000U);
  double mean = 0;
  for (uint32_t one : all) mean += one / static_cast<double>(all.size());
  EXPECT_NEAR(mean, 32767.5, 4 * 18918 / std::sqrt(static_cast<double>(all.size())));
}

}  // namespace
}  // namespace sextant
