// Quantisation where it is delicate, and products of fp8 operands against f64 sums of what the bytes mean.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/fp8.h"
#include "base/rng.h"
#include "exec/kernel_runner.h"
#include "ops/shapes.h"

namespace sextant {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Numbers spread(std::string_view name, size_t count, int octaves) {
  Random random(5, name);
  Numbers x(count);
  for (size_t i = 0; i < count; ++i)
    x[i] = static_cast<float>(std::ldexp(random.normal(i), static_cast<int>(i * 7 % static_cast<size_t>(octaves))));
  return x;
}

std::vector<Numbers> quantized(const Numbers& x, double amax, const char* dtype) {
  auto count = static_cast<int64_t>(x.size());
  return run_kernel({.def = ops::quantize_activation,
                     .attrs = {{"dtype", dtype}, {"transposed", 1}},
                     .types = {f64({1, 2, count / 2}), f64({})},
                     .inputs = {x, {amax}},
                     .real = DType::f32});
}

double largest_magnitude(const Numbers& x) {
  auto count = static_cast<int64_t>(x.size());
  return run_kernel(
      {.def = ops::absmax, .attrs = {}, .types = {f64({count})}, .inputs = {x}, .real = DType::f32})[0][0];
}

TEST(Quantize, TheLargestValueBecomesTheLargestCode) {
  for (const char* dtype : {"e4m3", "e5m2"}) {
    const Fp8Format& format = fp8_format(*dtype_from_name(dtype));
    Numbers x = spread("values", 256, 6);
    double amax = largest_magnitude(x);
    std::vector<Numbers> out = quantized(x, amax, dtype);
    double most = 0, error = 0;
    // Half a unit in the last place of a number with so many bits; below, half of the smallest subnormal.
    double relative = std::ldexp(1.0, -format.mantissa_bits - 1);
    for (size_t i = 0; i < x.size(); ++i) {
      most = std::max(most, std::abs(out[0][i]));
      double back = out[0][i] * out[1][0];
      double allowed =
          std::max(relative * std::abs(x[i]), std::ldexp(out[1][0], format.least_exponent - format.mantissa_bits - 1));
      EXPECT_LE(std::abs(back - x[i]), allowed * 1.0001) << dtype << " " << x[i];
      error = std::max(error, std::abs(back - x[i]));
    }
    EXPECT_EQ(most, format.largest);
    EXPECT_NEAR(out[1][0], amax / format.largest, 1e-6 * out[1][0]);
    EXPECT_GT(error, 0);
    for (size_t i = 0; i < 128; ++i)
      for (size_t row : {size_t{0}, size_t{1}}) EXPECT_EQ(out[2][i * 2 + row], out[0][row * 128 + i]);
  }
}

TEST(Quantize, OfNothingAndOfWhatIsNotFinite) {
  std::vector<Numbers> zeros = quantized(Numbers(4, 0.0), 0, "e4m3");
  EXPECT_EQ(zeros[0], Numbers(4, 0.0));
  EXPECT_EQ(zeros[1][0], 1);
  // An infinity has the scale 1 and saturates; a NaN stays one, and leaves the others alone.
  EXPECT_EQ(largest_magnitude({1, -kInfinity, 2, 3}), kInfinity);
  std::vector<Numbers> infinite = quantized({1, -kInfinity, 2, 500}, kInfinity, "e4m3");
  EXPECT_EQ(infinite[0], (Numbers{1, -448, 2, 448}));
  EXPECT_EQ(infinite[1][0], 1);
  EXPECT_TRUE(std::isnan(largest_magnitude({1, NAN, 2, 3})));
  EXPECT_TRUE(std::isnan(largest_magnitude({NAN, 1, 2, 3})));
  std::vector<Numbers> nan = quantized({1, NAN, 2, 3}, NAN, "e5m2");
  EXPECT_TRUE(std::isnan(nan[0][1]));
  EXPECT_EQ(nan[0][2], 2);
  EXPECT_EQ(nan[1][0], 1);
  // So small that largest / amax would be infinite.
  double tiny = std::ldexp(1.0, -140);
  std::vector<Numbers> small = quantized({tiny, 0, -tiny, 0}, tiny, "e5m2");
  EXPECT_GT(small[0][0], 0);
  EXPECT_TRUE(std::isfinite(small[0][0]) && small[1][0] > 0);
  EXPECT_EQ(small[0][2], -small[0][0]);
}

// Of several tasks, wherever the NaN is: numbers that come after it do not take its place.
TEST(Quantize, ANanIsTheLargestWhereverItStands) {
  Numbers x = spread("long", 5 * 16384 + 77, 6);
  for (size_t at : {size_t{0}, size_t{16383}, size_t{16384}, size_t{40000}, x.size() - 1}) {
    Numbers with_nan = x;
    with_nan[at] = NAN;
    EXPECT_TRUE(std::isnan(largest_magnitude(with_nan))) << at;
    with_nan[at] = -kInfinity;
    EXPECT_EQ(largest_magnitude(with_nan), kInfinity) << at;
  }
  // Of ops that write it beside their output.
  for (size_t at : {size_t{0}, size_t{7}, size_t{29}}) {
    Numbers tokens = spread("tokens", 30, 3), weights(10, 1.0);
    tokens[at] = NAN;
    std::vector<Numbers> out = run_kernel({.def = ops::rms_norm,
                                           .attrs = {{"eps", 1e-5}, {"amax", 1}},
                                           .types = {f64({1, 3, 10}), f64({10})},
                                           .inputs = {tokens, weights},
                                           .real = DType::f32});
    EXPECT_TRUE(std::isnan(out.back()[0])) << at;
  }
  // Of the tile it is in, and of no other: a tile without a usable scale has 1.
  for (size_t at = 0; at < 10; ++at) {
    Numbers row = spread("row", 10, 3);
    row[at] = NAN;
    std::vector<Numbers> out = run_kernel({.def = ops::quantize_tiles,
                                           .attrs = {{"dtype", "e4m3"}, {"tile", int64_t{4}}},
                                           .types = {f64({1, 1, 10})},
                                           .inputs = {row},
                                           .real = DType::f32});
    for (size_t tile = 0; tile < 3; ++tile) EXPECT_EQ(out[1][tile] == 1, tile == at / 4) << at << " tile " << tile;
  }
}

// Of numbers and their codes: zeros were not lost, and a NaN is at the end of the format's range.
TEST(RoundingStatistics, CountWhatWasLostAndWhatReachedTheEnd) {
  Numbers x{0, -0.0, 1e-9, -1e-9, 2, -448, 500, NAN}, codes{0, 0, 0, 0, 2, -448, 448, NAN};
  std::vector<Numbers> out = run_kernel({.def = ops::rounding_statistics,
                                         .attrs = {},
                                         .types = {f64({2, 4}), {DType::e4m3, {2, 4}}},
                                         .inputs = {x, codes},
                                         .real = DType::f32});
  EXPECT_EQ(out[0], (Numbers{8, 2, 3}));
}

TEST(Quantize, EveryTileHasItsOwnScale) {
  constexpr int64_t kRows = 6, kWidth = 10, kTile = 4;
  Numbers x = spread("tiles", 2 * kRows * kWidth, 20);
  std::vector<Numbers> out = run_kernel({.def = ops::quantize_tiles,
                                         .attrs = {{"dtype", "e4m3"}, {"tile", kTile}, {"transposed", 1}},
                                         .types = {f64({2, kRows, kWidth})},
                                         .inputs = {x},
                                         .real = DType::f32});
  auto at = [&](int64_t b, int64_t s, int64_t i) { return x[static_cast<size_t>((b * kRows + s) * kWidth + i)]; };
  int tiles = 0;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t s = 0; s < kRows; ++s)
      for (int64_t k = 0; k < 3; ++k, ++tiles) {
        double amax = 0;
        for (int64_t i = k * kTile; i < std::min(kWidth, (k + 1) * kTile); ++i)
          amax = std::max(amax, std::abs(at(b, s, i)));
        EXPECT_NEAR(out[1][static_cast<size_t>((b * kRows + s) * 3 + k)], amax / 448, 1e-6 * amax);
      }
  EXPECT_EQ(tiles, 36);
  // Of the transpose [i b s], along s.
  for (int64_t i = 0; i < kWidth; ++i)
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t n = 0; n < 2; ++n) {
        double amax = 0;
        for (int64_t s = n * kTile; s < std::min(kRows, (n + 1) * kTile); ++s)
          amax = std::max(amax, std::abs(at(b, s, i)));
        double scale = out[3][static_cast<size_t>((i * 2 + b) * 2 + n)];
        EXPECT_NEAR(scale, amax / 448, 1e-6 * amax);
        for (int64_t s = n * kTile; s < std::min(kRows, (n + 1) * kTile); ++s) {
          double back = out[2][static_cast<size_t>((i * 2 + b) * kRows + s)] * scale;
          EXPECT_NEAR(back, at(b, s, i), std::max(std::abs(at(b, s, i)) / 16, amax / 448 / 1024) * 1.001);
        }
      }
}

// Against f64 sums of the dequantised operands.
TEST(Fp8Products, AreThoseOfTheDequantisedOperands) {
  constexpr int64_t kTokens = 40, kIn = 300, kOut = 150, kTile = 128;
  auto type = [](DType dtype, GlobalShape shape) { return TensorType{dtype, std::move(shape)}; };
  // Numbers that fp8 has: what is written is what is meant.
  auto codes = [](std::string_view name, int64_t count) {
    Numbers x = spread(name, static_cast<size_t>(count), 6);
    for (double& number : x) number = fp8_value(kE4m3, fp8_bits(kE4m3, static_cast<float>(number)));
    return x;
  };
  auto positive = [](std::string_view name, int64_t count) {
    Numbers x = spread(name, static_cast<size_t>(count), 4);
    for (double& number : x) number = std::abs(number) + 0.01;
    return x;
  };
  Numbers x = codes("x", kTokens * kIn), w = codes("w", kOut * kIn);
  Numbers x_scales = positive("xs", kTokens * 3), w_scales = positive("ws", 2 * 3);
  for (bool tiled : {false, true}) {
    Numbers expected;
    for (int64_t t = 0; t < kTokens; ++t)
      for (int64_t o = 0; o < kOut; ++o) {
        double sum = 0;
        for (int64_t i = 0; i < kIn; ++i) {
          auto place = [&](int64_t row, int64_t width) { return static_cast<size_t>(row * width + i); };
          double xs = x_scales[tiled ? static_cast<size_t>(t * 3 + i / kTile) : 0];
          double ws = w_scales[tiled ? static_cast<size_t>(o / kTile * 3 + i / kTile) : 0];
          sum += x[place(t, kIn)] * xs * w[place(o, kIn)] * ws;
        }
        expected.push_back(sum);
      }
    KernelRun run{.def = tiled ? ops::fp8_block_linear : ops::fp8_linear,
                  .attrs = tiled ? Attrs{{"to", "f32"}, {"tile", kTile}} : Attrs{{"to", "f32"}},
                  .types = {type(DType::e4m3, {1, kTokens, kIn}), tiled ? f64({1, kTokens, 3}) : f64({}),
                            type(DType::e4m3, {kOut, kIn}), tiled ? f64({2, 3}) : f64({})},
                  .inputs = {x, tiled ? x_scales : Numbers{x_scales[0]}, w, tiled ? w_scales : Numbers{w_scales[0]}},
                  .real = DType::f32};
    EXPECT_LT(relative_error(run_kernel(run)[0], expected), 1e-6) << (tiled ? "tiles" : "whole");
  }
}

// Three bits of mantissa: the products of a linear are off by a few percent, and no more, with both recipes.
TEST(Fp8Products, AreNearTheWideOnes) {
  constexpr int64_t kTokens = 64, kIn = 128, kOut = 96;
  Numbers x = spread("activations", kTokens * kIn, 3), w = spread("weights", kOut * kIn, 1);
  Numbers wide = run_kernel(
      {.def = ops::linear, .attrs = {}, .types = {f64({1, kTokens, kIn}), f64({kOut, kIn})}, .inputs = {x, w}})[0];
  for (bool tiled : {false, true}) {
    auto narrow = [&](const OpDef& whole, const OpDef& tiles, const Numbers& of, const GlobalShape& shape) {
      std::vector<Numbers> inputs{of};
      TensorTypes types{f64(shape)};
      if (!tiled) inputs.push_back({largest_magnitude(of)}), types.push_back(f64({}));
      Attrs attrs{{"dtype", "e4m3"}};
      if (tiled) attrs.set("tile", int64_t{32});
      return run_kernel(
          {.def = tiled ? tiles : whole, .attrs = attrs, .types = types, .inputs = inputs, .real = DType::f32});
    };
    std::vector<Numbers> qx = narrow(ops::quantize_activation, ops::quantize_tiles, x, {1, kTokens, kIn});
    std::vector<Numbers> qw = narrow(ops::quantize_weight, ops::quantize_blocks, w, {kOut, kIn});
    KernelRun run{.def = tiled ? ops::fp8_block_linear : ops::fp8_linear,
                  .attrs = tiled ? Attrs{{"to", "f32"}, {"tile", 32}} : Attrs{{"to", "f32"}},
                  .types = {{DType::e4m3, {1, kTokens, kIn}},
                            tiled ? f64({1, kTokens, 4}) : f64({}),
                            {DType::e4m3, {kOut, kIn}},
                            tiled ? f64({3, 4}) : f64({})},
                  .inputs = {qx[0], qx[1], qw[0], qw[1]},
                  .real = DType::f32};
    double error = relative_error(run_kernel(run)[0], wide);
    EXPECT_LT(error, 0.05) << (tiled ? "tiles" : "whole");
    EXPECT_GT(error, 0.005) << (tiled ? "tiles" : "whole");
  }
}

}  // namespace
}  // namespace sextant
