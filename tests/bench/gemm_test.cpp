// Shapes as people write them, the products of a config against a list made by hand, and the search for the best shape
// against a full sweep of surfaces with ridges and dents.
#include "bench/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "config/load.h"
#include "config/resolve.h"
#include "exec/cpu/cpu_executor.h"
#include "exec/cpu/cpu_probe.h"

namespace sextant {
namespace {

TEST(Gemm, ShapesAndRangesAreRead) {
  EXPECT_EQ(parse_shape("4096x128x7", "--shape"), (ProductShape{4096, 128, 7}));
  EXPECT_EQ(parse_range("64", "--m"), (std::vector<int64_t>{64}));
  EXPECT_EQ(parse_range("64:256:96", "--m"), (std::vector<int64_t>{64, 160, 256}));
  for (const char* bad :
       {"", "4096", "4096x128", "4096x128x", "4096x128x0", "axbxc", "1x2x3x4", "99999999999999999999x1x1", "-1x1x1"})
    EXPECT_THROW(parse_shape(bad, "--shape"), UserError) << bad;
  for (const char* bad : {"", "1:2", "2:1:1", "1:16777216:1", "0:5:1", "1:5:0"})
    EXPECT_THROW(parse_range(bad, "--m"), UserError) << bad;
}

using Shapes = std::set<std::array<int64_t, 3>>;

Shapes products_of_config(const std::vector<std::string>& overrides) {
  RunConfig run = parse_config("", "test", overrides);
  LoweredRun lowered = lower_run(run, resolve_model(run), cpu_target(1));
  Shapes shapes;
  for (const ProductShape& s : products_of(lowered)) shapes.insert({s.m, s.n, s.k});
  return shapes;
}

// A weight [out, in] with so many tokens: forward, gradient of the input, gradient of the weight.
void add_linear(Shapes& shapes, int64_t tokens, int64_t in, int64_t out) {
  shapes.insert({tokens, out, in});
  shapes.insert({tokens, in, out});
  shapes.insert({out, in, tokens});
}

const std::vector<std::string> kLlama{
    "model.architecture=llama", "model.layers=2", "model.hidden=64",   "model.heads=4",
    "model.kv_heads=2",         "model.ffn=192",  "model.vocab=512",   "batch.sequences=8",
    "batch.microbatch=4",       "batch.seq=32",   "train.eval_every=0"};

TEST(Gemm, ProductsOfAConfigAreThoseOfItsLayers) {
  constexpr int64_t kTokens = 4 * 32, kHidden = 64, kHeadDim = 16;
  Shapes wanted;
  add_linear(wanted, kTokens, kHidden, (4 + 2 * 2) * kHeadDim);  // q, k and v
  add_linear(wanted, kTokens, 4 * kHeadDim, kHidden);            // out
  add_linear(wanted, kTokens, kHidden, 2 * 192);                 // gate and up
  add_linear(wanted, kTokens, 192, kHidden);                     // down
  add_linear(wanted, kTokens, kHidden, 512);                     // head
  EXPECT_EQ(products_of_config(kLlama), wanted);
}

TEST(Gemm, OnTwoTensorRanksEachHasItsHalf) {
  constexpr int64_t kTokens = 4 * 32, kHidden = 64;
  std::vector<std::string> overrides = kLlama;
  overrides.push_back("mesh.tp=2");
  Shapes wanted, own = products_of_config(overrides);
  add_linear(wanted, kTokens, kHidden, 128 / 2);
  add_linear(wanted, kTokens, 64 / 2, kHidden);
  add_linear(wanted, kTokens, kHidden, 2 * 192 / 2);
  add_linear(wanted, kTokens, 192 / 2, kHidden);
  add_linear(wanted, kTokens, kHidden, 512 / 2);
  EXPECT_EQ(own, wanted);
}

TEST(Gemm, BestShapeComesNearAFullSweepInATenthOfIt) {
  ShapeSpace space;  // multiples of 1024 up to 16384
  // Waves of 128×256 tiles over 132 units, operands that must be loaded, and power that large products draw.
  auto waves = [](const ProductShape& s) {
    double tiles = std::ceil(static_cast<double>(s.m) / 128) * std::ceil(static_cast<double>(s.n) / 256), units = 132;
    double full = tiles / units / std::ceil(tiles / units),
           fill = static_cast<double>(s.k) / (static_cast<double>(s.k) + 300);
    double bytes = 2.0 * (static_cast<double>(s.m * s.k + s.n * s.k + s.m * s.n)), hot = 1 / (1 + s.flops() / 6e13);
    return 1e15 * full * fill * hot / (1 + 200 * bytes / s.flops());
  };
  auto ridged = [](const ProductShape& s) {
    double bump = std::sin(static_cast<double>(s.m) / 900) * std::cos(static_cast<double>(s.n) / 1300) *
                  std::sin(1 + static_cast<double>(s.k) / 2100);
    return 7e14 * (1 - 0.15 * std::abs(std::log(static_cast<double>(s.m) / 5120))) * (1 + 0.01 * bump);
  };
  for (const auto& rate :
       {std::function<double(const ProductShape&)>(waves), std::function<double(const ProductShape&)>(ridged)}) {
    double best = 0, work = 0, asked_work = 0;
    int all = 0;
    for (int64_t m = 1024; m <= 16384; m += 1024)
      for (int64_t n = 1024; n <= 16384; n += 1024)
        for (int64_t k = 1024; k <= 16384; k += 1024) {
          ProductShape s{m, n, k};
          best = std::max(best, rate(s)), work += s.flops() / rate(s), ++all;
        }
    BestShape found = best_shape(
        space, [&](const ProductShape& s) { return asked_work += s.flops() / rate(s), rate(s); }, [] { return false; });
    EXPECT_GE(found.rate, 0.98 * best);
    EXPECT_LE(found.asked, all / 10);
    EXPECT_LE(asked_work, work / 10);
    EXPECT_DOUBLE_EQ(found.rate, rate(found.shape));
  }
}

TEST(Gemm, AStoppedSearchHasTheBestSoFar) {
  int asked = 0;
  BestShape found = best_shape(
      {}, [&](const ProductShape& s) { return ++asked, static_cast<double>(s.k); }, [&] { return asked >= 7; });
  EXPECT_EQ(found.asked, 7);
  EXPECT_GT(found.rate, 0);
}

TEST(Gemm, ProductsAreTimedAndVerified) {
  std::unique_ptr<DeviceProbe> probe = make_cpu_probe(1);
  BenchReport report;
  bench_gemm({.probe = *probe,
              .shapes = {{33, 17, 65}, {64, 64, 64}},
              .types = {"fp32"},
              .peaks = {},
              .repeat = {.least = 2, .most = 3, .seconds = 0, .warm_seconds = 0}},
             report, {});
  ASSERT_EQ(report.results.size(), 2u);
  for (const BenchResult& r : report.results) {
    EXPECT_LT(r.error, 1) << r.shape;
    EXPECT_GE(r.samples.size(), 2u);
    EXPECT_GT(r.flops_per_s(), 0);
  }
  EXPECT_DOUBLE_EQ(report.results[0].flops, 2.0 * 33 * 17 * 65);
}

TEST(Memory, EveryStreamDoesWhatItSays) {
  std::unique_ptr<DeviceProbe> probe = make_cpu_probe(2);
  for (Stream stream : {Stream::copy, Stream::triad, Stream::read, Stream::write}) {
    std::unique_ptr<TimedWork> work = probe->stream(stream, 1'000'004);
    EXPECT_GT(work->run(), 0);
    EXPECT_LT(work->error(), 1);
  }
  // Before it has run, a copy holds nothing of what it should.
  EXPECT_GT(probe->stream(Stream::copy, 4096)->error(), 1);
}

}  // namespace
}  // namespace sextant
