// Reports written and read back, refused when they are none, compared, and drawn.
#include "bench/result.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "bench/sizing.h"

namespace sextant {
namespace {

BenchResult result_with(const std::string& shape, double seconds) {
  BenchResult r{.kind = "gemm",
                .name = "product",
                .shape = shape,
                .dtype = "fp32",
                .size = {8, 8, 8},
                .samples = {},
                .flops = 1024,
                .bytes = 768,
                .peak_share = 0.5,
                .error = 0.25};
  for (int i = 0; i < 30; ++i) r.samples.push_back(seconds * (1 + 0.001 * ((i * 7) % 10)));
  return r;
}

BenchReport some_report() {
  BenchReport report;
  report.environment = {{"date", "2026-11-15 12:00 UTC"}, {"device", "a \"device\" <1>"}};
  report.results = {result_with("8x8x8", 1e-6), result_with("8x8x16", 2e-6)};
  report.findings = {"vocab 50257: 18 % slower than 50304"};
  report.interrupted = true;
  return report;
}

TEST(BenchReport, JsonAndBackIsTheSame) {
  BenchReport report = some_report();
  EXPECT_EQ(parse_report(report_json(report), "a.json"), report);
}

TEST(BenchReport, WhatIsNoReportIsRefusedWithItsPlace) {
  std::string good = report_json(some_report());
  auto refused = [](const std::string& text) -> std::string {
    try {
      parse_report(text, "a.json");
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  EXPECT_NE(refused("").find("a.json"), std::string::npos);
  EXPECT_NE(refused("[]").find("environment"), std::string::npos);
  EXPECT_NE(refused("{\"environment\":{}}").find("results"), std::string::npos);
  EXPECT_NE(refused(with("\"gemm\"", "7")).find("results[0].kind"), std::string::npos);
  EXPECT_NE(refused(with("1024.0", "-1")).find("flops"), std::string::npos);
  EXPECT_NE(refused(with("\"interrupted\": true", "\"interrupted\": 3")).find("interrupted"), std::string::npos);
  EXPECT_NE(refused(std::string(100'000, '[')), "");
}

TEST(BenchReport, TheTableTellsWhatWasFound) {
  std::string text = report_text(some_report());
  for (const char* part : {"8x8x16", "fp32", "50.0 %", "vocab 50257", "Interrupted", "device: a"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  BenchReport wrong = some_report();
  wrong.results[0].error = 3;
  EXPECT_NE(report_text(wrong).find("WRONG"), std::string::npos);
}

TEST(BenchReport, TheSameRunTwiceHasNotChanged) {
  BenchReport before = some_report(), after = before;
  std::reverse(after.results[0].samples.begin(), after.results[0].samples.end());
  for (const Change& change : compare_reports(before, after).changes) EXPECT_FALSE(change.certain) << change.key;
}

TEST(BenchReport, AChangeBeyondNoiseIsNamed) {
  BenchReport before = some_report(), after = before;
  after.results[1] = result_with("8x8x16", 2.4e-6);
  after.results.push_back(result_with("9x9x9", 1e-6));
  Comparison comparison = compare_reports(before, after);
  ASSERT_EQ(comparison.changes.size(), 2u);
  EXPECT_TRUE(comparison.changes[0].certain);
  EXPECT_EQ(comparison.changes[0].key, "gemm product 8x8x16 fp32");
  EXPECT_FALSE(comparison.changes[1].certain);
  ASSERT_EQ(comparison.added.size(), 1u);
  std::string text = comparison_text(comparison);
  EXPECT_NE(text.find("20.0 % slower"), std::string::npos) << text;
  EXPECT_NE(text.find("1 of 2 results changed"), std::string::npos) << text;
}

TEST(BenchReport, ASmallShiftInsideTheSpreadIsNoise) {
  BenchReport before, after;
  before.results = {result_with("8x8x8", 1e-6)};
  after.results = before.results;
  for (size_t i = 0; i < 30; ++i) before.results[0].samples[i] = 1e-6 * (1 + 0.02 * static_cast<double>(i));
  for (size_t i = 0; i < 30; ++i) after.results[0].samples[i] = before.results[0].samples[i] * 1.04;
  EXPECT_FALSE(compare_reports(before, after).changes[0].certain);
}

TEST(BenchReport, ThePageHoldsPicturesAndEscapesText) {
  std::string html = report_html(some_report(), "title");
  EXPECT_NE(html.find("<svg"), std::string::npos);
  EXPECT_NE(html.find("Roofline"), std::string::npos);
  EXPECT_EQ(html.find("<1>"), std::string::npos);
  EXPECT_EQ(html.find("<script"), std::string::npos);
}

// Bytes that a GEMM moves give no memory bandwidth: without streams only the compute roof is drawn.
TEST(BenchReport, ARooflineWithoutStreamsHasNoMemoryRoof) {
  BenchReport gemms;
  gemms.results = {result_with("8x8x8", 1e-6), result_with("64x64x64", 1e-6)};
  gemms.results[0].bytes = 768, gemms.results[1].bytes = 49152, gemms.results[1].flops = 524288;
  std::string html = report_html(gemms, "title");
  EXPECT_NE(html.find("Memory bandwidth not measured"), std::string::npos);
  EXPECT_NE(html.find("bench memory"), std::string::npos);
  EXPECT_EQ(html.find("what was reached at most"), std::string::npos);
  // The line of the roof is level.
  size_t line = html.find("<polyline points=\"");
  ASSERT_NE(line, std::string::npos);
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  ASSERT_EQ(std::sscanf(html.c_str() + line, "<polyline points=\"%lf,%lf %lf,%lf", &x1, &y1, &x2, &y2), 4);
  EXPECT_EQ(y1, y2);

  gemms.results.push_back(result_with("4096", 1e-6));
  gemms.results.back().kind = "memory", gemms.results.back().bytes = 4096, gemms.results.back().flops = 0;
  std::string with_streams = report_html(gemms, "title");
  EXPECT_EQ(with_streams.find("not measured"), std::string::npos);
  EXPECT_NE(with_streams.find("what was reached at most"), std::string::npos);
}

TEST(BenchReport, EveryGroupHasItsCurves) {
  BenchReport report;
  for (const char* group : {"tp", "dp"})
    for (const char* name :
         {"all_reduce in place over ", "all_reduce out of place over ", "all_to_all out of place over "})
      for (double bytes : {1024.0, 4096.0})
        report.results.push_back({.kind = "comm",
                                  .name = std::string(name) + group,
                                  .shape = std::to_string(bytes),
                                  .dtype = "f32",
                                  .size = {bytes, 2, 1},
                                  .samples = {bytes / 1e9},
                                  .bytes = bytes});
  std::string html = report_html(report, "title");
  for (const char* part : {"Communication over tp", "Communication over dp", "all_reduce", "all_to_all"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
}

TEST(Sizing, CliffsAreNamedWithTheNearestBetterSize) {
  // 50257 is slow; 50304 and 50432 are fast alike; 51200 is too far to be its neighbour's better.
  std::vector<SizePoint> points{
      {50257, 50257e9, 1.18}, {50304, 50304e9, 1.0}, {50432, 50432e9, 1.002}, {60000, 60000e9, 1.0}};
  std::vector<std::string> cliffs = cliffs_of("vocab", points);
  ASSERT_EQ(cliffs.size(), 1u);
  EXPECT_EQ(cliffs[0], "vocab 50257: 18 % slower than 50304, the nearest better size");
  EXPECT_TRUE(cliffs_of("vocab", {{100, 1e9, 1}, {102, 1.02e9, 1.03}}).empty());
  EXPECT_TRUE(cliffs_of("vocab", {{1000, 1e9, 1.5}, {1100, 1.1e9, 1}}).empty());  // faster, but a tenth away
}

TEST(Sizing, NearbySizesHoldTheOwnAndRoundOnes) {
  ModelSpec spec;
  spec.hidden = 768, spec.heads = 12, spec.kv_heads = 12, spec.ffn = 3072, spec.vocab = 50257;
  RunConfig run;
  std::vector<int64_t> vocab = nearby_sizes("vocab", spec, run);
  for (int64_t wanted : {50257, 50264, 50304, 50432})
    EXPECT_EQ(std::count(vocab.begin(), vocab.end(), wanted), 1) << wanted;
  for (int64_t heads : nearby_sizes("heads", spec, run)) EXPECT_EQ(768 % heads, 0);
  spec.kv_heads = 4;  // which heads are shared among
  EXPECT_EQ(nearby_sizes("heads", spec, run), (std::vector<int64_t>{8, 12, 16, 24}));
}

}  // namespace
}  // namespace sextant
