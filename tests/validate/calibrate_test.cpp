// Fits of efficiencies: rows whose times were made with others than the tables' are fitted to these.
#include "validate/calibrate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "validate/validation_figures.h"

namespace sextant {
namespace {

constexpr const char* kMachine = "a100-80-sxm";

// Small models on one to eight devices, of three sources; `measured` is what the efficiencies say.
Validation rows_made_with(double Efficiencies::*field, double times) {
  std::string text =
      "source,model,arch,layers,hidden,heads,kv_heads,ffn_hidden,vocab,seq,gpu,n_gpus,dp,tp,pp,zero_stage,"
      "global_batch_seqs,micro_batch,precision,measured_iter_s,how_known\n";
  for (int i = 0; i < 9; ++i) {
    int devices = 1 << i % 4, batch = devices * (1 + i % 2);
    text += fmt::format("TinyLlama {},m,llama,2,{},8,8,{},32000,{},A100-80GB-SXM,{},{},1,1,0,{},1,bf16,1,trust A\n",
                        i % 3, 512 * (1 + i % 3), 1024 * (1 + i % 3), 1024 << i % 2, devices, devices, batch);
  }
  Validation validation(parse_published_runs(text, "made"));
  Efficiencies made_with = validation.machines().at(kMachine).tables;
  made_with.*field *= times;
  std::vector<size_t> all;
  for (size_t i = 0; i < validation.rows().size(); ++i) all.push_back(i);
  validation.predict_rows(all, made_with);
  for (ValidationRow& row : validation.rows()) row.measured_s = row.predicted_s;
  return validation;
}

TEST(Calibrate, FindsTheEfficienciesThatTimesWereMadeWith) {
  for (auto [field, times] : {std::pair{&Efficiencies::product, 0.8}, std::pair{&Efficiencies::memory, 0.7},
                              std::pair{&Efficiencies::kernel_s, 2.0}}) {
    Validation validation = rows_made_with(field, times);
    ASSERT_EQ(validation.rows().size(), 9u);
    for (const ValidationRow& row : validation.rows()) ASSERT_EQ(row.why_not, "");
    Calibration fit = calibrate(validation, kMachine, Models::dense);
    EXPECT_EQ(fit.rows, 9u);
    EXPECT_GT(fit.before, 0.02);
    EXPECT_LT(fit.after, 0.2 * fit.before);
  }
}

// Times made with the tables have nothing to fit, on whichever rows.
TEST(Calibrate, LeavesTablesThatAreRight) {
  Validation validation = rows_made_with(&Efficiencies::product, 1);
  Calibration fit = calibrate(validation, kMachine, Models::dense);
  EXPECT_EQ(fit.efficiency, validation.machines().at(kMachine).tables);
  EXPECT_EQ(calibrate(validation, kMachine, Models::experts).rows, 0u);
}

TEST(Calibrate, SourcesLeftOutArePredictedByTheOthers) {
  Validation validation = rows_made_with(&Efficiencies::product, 0.8);
  std::vector<HeldOut> held = hold_out_sources(validation, kMachine, Models::dense);
  ASSERT_EQ(held.size(), 3u);
  for (const HeldOut& source : held) {
    EXPECT_EQ(source.fitted_on, 6u);
    ASSERT_EQ(source.errors.size(), 3u);
    EXPECT_LT(quantile(source.absolute(), 0.5), 0.03) << source.source;
  }
}

}  // namespace
}  // namespace sextant
