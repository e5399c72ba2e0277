// Shapes as people write them, the GEMMs of a config against a list made by hand, and GEMMs that are timed.
#include "bench/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "bench/stated_call.h"
#include "config/load.h"
#include "config/resolve.h"
#include "exec/cpu/cpu_executor.h"
#include "exec/cpu/cpu_probe.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

TEST(Gemm, ShapesAndRangesAreRead) {
  EXPECT_EQ(parse_shape("4096x128x7", "--shape"), (GemmDims{4096, 128, 7}));
  EXPECT_EQ(parse_range("64", "--m"), (std::vector<int64_t>{64}));
  EXPECT_EQ(parse_range("64:256:96", "--m"), (std::vector<int64_t>{64, 160, 256}));
  for (const char* bad :
       {"", "4096", "4096x128", "4096x128x", "4096x128x0", "axbxc", "1x2x3x4", "99999999999999999999x1x1", "-1x1x1"})
    EXPECT_THROW(parse_shape(bad, "--shape"), UserError) << bad;
  for (const char* bad : {"", "1:2", "2:1:1", "1:16777216:1", "0:5:1", "1:5:0"})
    EXPECT_THROW(parse_range(bad, "--m"), UserError) << bad;
}

using Shapes = std::set<std::array<int64_t, 3>>;

Shapes gemms_of_config(const std::vector<std::string>& overrides) {
  RunConfig run = parse_config("", "test", overrides);
  LoweredRun lowered = lower_run(run, resolve_model(run), cpu_target(1));
  Shapes shapes;
  for (const GemmDims& s : gemms_of(lowered)) shapes.insert({s.m, s.n, s.k});
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

TEST(Gemm, GemmsOfAConfigAreThoseOfItsLayers) {
  constexpr int64_t kTokens = 4 * 32, kHidden = 64, kHeadDim = 16;
  Shapes wanted;
  add_linear(wanted, kTokens, kHidden, (4 + 2 * 2) * kHeadDim);  // q, k and v
  add_linear(wanted, kTokens, 4 * kHeadDim, kHidden);            // out
  add_linear(wanted, kTokens, kHidden, 2 * 192);                 // gate and up
  add_linear(wanted, kTokens, 192, kHidden);                     // down
  add_linear(wanted, kTokens, kHidden, 512);                     // head
  EXPECT_EQ(gemms_of_config(kLlama), wanted);
}

TEST(Gemm, OnTwoTensorRanksEachHasItsHalf) {
  constexpr int64_t kTokens = 4 * 32, kHidden = 64;
  std::vector<std::string> overrides = kLlama;
  overrides.push_back("mesh.tp=2");
  Shapes wanted, own = gemms_of_config(overrides);
  add_linear(wanted, kTokens, kHidden, 128 / 2);
  add_linear(wanted, kTokens, 64 / 2, kHidden);
  add_linear(wanted, kTokens, kHidden, 2 * 192 / 2);
  add_linear(wanted, kTokens, 192 / 2, kHidden);
  add_linear(wanted, kTokens, kHidden, 512 / 2);
  EXPECT_EQ(own, wanted);
}

// A device that takes no time: every call says what it would have taken.
class SayingProbe final : public DeviceProbe {
 public:
  DeviceFacts facts() const override { return {.name = "none"}; }
  Readings readings() const override { return {}; }
  std::vector<std::string> gemm_types() const override { return {"bf16"}; }
  std::unique_ptr<TimedWork> gemm(const GemmDims& shape, const std::string&) override {
    if (shape.k > largest_k) throw RunError("a GEMM", "no room");
    double away = std::abs(std::log(static_cast<double>(shape.m * shape.n) / (3072.0 * 5120)));
    return std::make_unique<StatedCall>(shape.flops() / (5e14 - 1e13 * away));
  }
  std::unique_ptr<TimedWork> stream(Stream, int64_t) override { return std::make_unique<StatedCall>(1); }
  int64_t largest_k = 1 << 20;
};

constexpr std::chrono::milliseconds kNoRest{0};  // nothing gets warm

TEST(Gemm, TheBestShapeIsReportedWithItsSamples) {
  SayingProbe probe;
  GemmRequest request{.probe = probe, .shapes = {}, .types = {"bf16"}, .peaks = {{"bf16", 1e15}}, .rest = kNoRest};
  BenchReport report;
  bench_mamf(request, {}, report, {});
  ASSERT_EQ(report.results.size(), 1u);
  const BenchResult& best = report.results[0];
  EXPECT_EQ(best.name, "most achievable");
  EXPECT_EQ(best.size[0] * best.size[1], 3072 * 5120) << best.shape;
  EXPECT_NEAR(best.flops_per_s(), 5e14, 1e9);
  EXPECT_DOUBLE_EQ(best.peak_share, best.flops_per_s() / 1e15);
  // Three times a tenth of a second, and not the glance before.
  EXPECT_NEAR(static_cast<double>(best.samples.size()) * best.samples[0], 0.3, 0.1);
  EXPECT_NE(report.findings.at(0).find("shapes tried"), std::string::npos) << report.findings[0];
}

TEST(Gemm, WhatTheDeviceCannotDoIsToldAndTheRestGoesOn) {
  SayingProbe probe;
  probe.largest_k = 8192;
  GemmRequest request{
      .probe = probe, .shapes = {{8, 8, 8}, {8, 8, 16384}, {8, 8, 16}}, .types = {"bf16"}, .rest = kNoRest};
  BenchReport report;
  bench_gemm(request, report, {});
  EXPECT_EQ(report.results.size(), 2u);
  EXPECT_NE(report.findings.at(0).find("not timed: gemm 8x8x16384 bf16"), std::string::npos) << report.findings[0];
  bench_mamf(request, {}, report, {});
  EXPECT_LE(report.results.at(2).size[2], 8192);
  request.shapes = {{8, 8, 16384}};
  EXPECT_THROW(bench_gemm(request, report, {}), RunError);
}

TEST(Gemm, AStoppedSearchReportsTheBestSoFar) {
  SayingProbe probe;
  GemmRequest request{.probe = probe, .shapes = {}, .types = {"bf16"}, .rest = kNoRest};
  BenchReport report;
  int said = 0;
  bench_mamf(request, {}, report, {.stop = [&] { return said >= 5; }, .say = [&](const std::string&) { ++said; }});
  ASSERT_EQ(report.results.size(), 1u);
  EXPECT_FALSE(report.results[0].samples.empty());
  EXPECT_NE(report.findings.at(0).find("the best of 3 shapes tried"), std::string::npos) << report.findings[0];
}

TEST(Gemm, GemmsAreTimedAndVerified) {
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
