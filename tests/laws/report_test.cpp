#include "laws/report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "laws/refused.h"

namespace sextant {
namespace {

const LawRow& row_of(const LawsReport& report, const std::string& name) {
  for (const LawRow& row : report.rows)
    if (row.law.name.find(name) != std::string::npos) return row;
  throw std::runtime_error("no row " + name);
}

TEST(LawsReport, ComputeGivesEveryLawsOptimum) {
  LawsReport report = laws_report({.compute = 5.76e23});
  EXPECT_EQ(report.rows.size(), 7u);
  EXPECT_NEAR(row_of(report, "Besiroglu").optimum.params, 72.249e9, 1e6);
  EXPECT_NEAR(*row_of(report, "as printed").optimum.loss, 1.93075, 1e-5);
  EXPECT_FALSE(row_of(report, "envelope").optimum.loss);
  EXPECT_FALSE(report.lifetime);
}

TEST(LawsReport, TokensAndParametersFindTheirOptimum) {
  for (const LawRow& row : laws_report({.tokens = 1.4e12}).rows)
    EXPECT_NEAR(row.optimum.tokens, 1.4e12, 1e6) << row.law.name;
  for (const LawRow& row : laws_report({.params = 70e9}).rows)
    EXPECT_NEAR(row.optimum.params, 70e9, 1e5) << row.law.name;
}

TEST(LawsReport, ADecidedRunHasItsOwnLoss) {
  LawsReport report = laws_report({.tokens = 15e12, .params = 8.03e9});
  EXPECT_NEAR(*row_of(report, "Besiroglu").decided_loss, 2.02184, 1e-5);
  EXPECT_NEAR(row_of(report, "Besiroglu").optimum.compute() / (6 * 8.03e9 * 15e12), 1, 1e-9);
  EXPECT_FALSE(row_of(report, "Kaplan").decided_loss);
}

TEST(LawsReport, TextShowsWhatAPersonLooksFor) {
  std::string text = laws_text({.compute = 5.76e23, .inference_tokens = 1e13});
  for (const char* part : {"5.76e23 FLOPs", "72.2 B", "1.33 T", "18.4", "1.974", "Kaplan 2020", "0.50×", "+25.9 %",
                           "36.1 B", "10 T tokens served", "saves 28."})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(LawsReport, JsonHoldsTheSameNumbers) {
  LawsRequest request{.compute = 5.76e23, .inference_tokens = 1e13};
  nlohmann::json json = nlohmann::json::parse(laws_json(request));
  LawsReport report = laws_report(request);
  ASSERT_EQ(json["laws"].size(), 7u);
  EXPECT_EQ(json["laws"][4]["optimum"]["params"].get<double>(), report.rows[4].optimum.params);
  EXPECT_TRUE(json["laws"][0]["optimum"]["loss"].is_null());
  EXPECT_EQ(json["lifetime"]["saving"].get<double>(), report.lifetime->saving());
  EXPECT_EQ(json["undersized_tradeoff"]["rows"].size(), report.smaller.size());
}

// Runs of Hoffmann's printed law, in a file.
std::string runs_file(const char* name) {
  std::string csv = "params,tokens,loss\n";
  for (double params : {1e8, 3e8, 1e9, 3e9})
    for (double tokens : {2e9, 1e10, 5e10})
      csv += fmt::format("{},{},{}\n", params, tokens, hoffmann_printed().loss(params, tokens));
  std::string path = std::filesystem::temp_directory_path() / name;
  write_file_atomically(path, csv);
  return path;
}

TEST(LawsReport, OwnRunsAnswerFirst) {
  std::string path = runs_file("sextant_laws_report_test.csv");
  LawsReport report = laws_report({.compute = 5.76e23, .inference_tokens = 1e12, .fit_csv = path});
  std::filesystem::remove(path);
  EXPECT_EQ(report.rows.front().law.name, "your runs");
  EXPECT_NEAR(report.rows.front().optimum.params / 3.219e10, 1, 1e-3);
  EXPECT_NEAR(report.smaller[1].overhead, 0, 1e-9);
  EXPECT_NEAR(size_limit(report.law), 0.0965, 1e-4);
  std::string text = laws_text(report);
  for (const char* part :
       {"12 runs in ", "alpha", "0.34", "N* grows as C to the", "far to extrapolate", "200 resamples"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  nlohmann::json json = nlohmann::json::parse(laws_json(report));
  EXPECT_NEAR(json["fit"]["params_exponent"]["value"].get<double>(), 0.4516, 1e-3);
  EXPECT_EQ(json["fit"]["runs"], 12);
}

TEST(LawsReport, AFitNeedsNoBudget) {
  std::string path = runs_file("sextant_laws_fit_only_test.csv");
  LawsReport report = laws_report({.fit_csv = path});
  std::filesystem::remove(path);
  EXPECT_TRUE(report.rows.empty());
  EXPECT_NE(laws_text(report).find("0.50×"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(laws_json(report))["laws"].empty());
}

TEST(LawsReport, NonsenseIsRefused) {
  expect_refused([] { laws_report({}); }, "neither a budget nor runs");
  expect_refused([] { laws_report({.compute = 1e20, .tokens = 1e9}); }, "--compute");
  expect_refused([] { laws_report({.compute = -1}); }, "--compute: -1");
  expect_refused([] { laws_report({.tokens = 1e300}); }, "--tokens");
  expect_refused([] { laws_report({.params = std::nan("")}); }, "--params");
  expect_refused([] { laws_report({.compute = 1e20, .inference_tokens = -5}); }, "--inference-tokens");
  expect_refused([] { laws_report({.fit_csv = "/nowhere/runs.csv"}); }, "/nowhere/runs.csv");
}

}  // namespace
}  // namespace sextant
