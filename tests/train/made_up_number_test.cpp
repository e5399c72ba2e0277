// A number of a step that only this file declares, as docs/extend/step-number.md describes it: its declaration is all
// that is added. That it is read from Programs, joined over ranks, written and described follows from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/files.h"
#include "metric_rows.h"
#include "scratch_run.h"
#include "train/step_numbers.h"
#include "watch/field_label.h"
#include "watch/prometheus.h"
#include "watch/tensorboard.h"

namespace sextant {
namespace {

constexpr TypedStepNumber<double> kWorstPart{
    {.name = "worst_part",
     .unit = "nats",
     .when = number::when::every_step,
     .about = "Largest loss that a rank adds for one microbatch, summed over its tokens.",
     .label = "worst part of the loss",
     .fetch = Fetch{"loss", HandedOut::each_microbatch, JoinedBy::largest, as_it_is}}};

std::vector<double> numbers_in(const ScratchRun& scratch, const char* out, const char* field) {
  std::vector<double> numbers;
  for (const std::string& text : scratch.metric(out, field)) numbers.push_back(std::stod(text));
  return numbers;
}

std::vector<std::string> settings_with(std::vector<std::string> more) {
  for (const char* own : {"train.steps=2", "batch.sequences=4", "batch.seq=32", "train.eval_every=0",
                          "optimizer.warmup=0", "checkpoint.at_end=false"})
    more.emplace_back(own);
  return more;
}

TEST(MadeUpNumber, IsReadAndJoinedAsItsDeclarationSays) {
  AddedStepNumber added(kWorstPart.number);
  ScratchRun scratch("made-up-number");
  scratch.run("whole", settings_with({"batch.microbatch=4"}));
  scratch.run("parts", settings_with({"batch.microbatch=1"}));
  scratch.run("ranks", settings_with({"batch.microbatch=1", "mesh.dp=2", "mesh.pp=2"}));
  std::vector<double> loss = numbers_in(scratch, "whole", "loss"), whole = numbers_in(scratch, "whole", "worst_part"),
                      parts = numbers_in(scratch, "parts", "worst_part"),
                      ranks = numbers_in(scratch, "ranks", "worst_part");
  ASSERT_EQ(whole.size(), 2U);
  ASSERT_EQ(parts.size(), 2U);
  ASSERT_EQ(ranks.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    const double sum = loss[i] * 4 * 32;
    EXPECT_NEAR(whole[i], sum, 1e-5 * sum) << "one microbatch has all of it";
    EXPECT_GT(parts[i], sum / 4) << "the largest of four is above their mean";
    EXPECT_LT(parts[i], sum / 2);
    EXPECT_NEAR(ranks[i], parts[i], 1e-4 * sum) << "each rank has one sequence at a time too";
  }
}

TEST(MadeUpNumber, IsInDocsPrometheusAndTensorboardWhileItIsDeclared) {
  EXPECT_EQ(std::ranges::count(metric_fields(), "worst_part", &MetricField::name), 0);
  AddedStepNumber added(kWorstPart.number);
  std::vector<MetricField> fields = metric_fields();
  auto field = std::ranges::find(fields, "worst_part", &MetricField::name);
  ASSERT_NE(field, fields.end());
  EXPECT_EQ(row_of(*field),
            "| `worst_part` | nats | every step | Largest loss that a rank adds for one microbatch, summed over its "
            "tokens. |\n");
  EXPECT_EQ(fields.back().name, "non_finite") << "the last of a line";
  EXPECT_EQ(field_label("worst_part"), "worst part of the loss");

  ScratchRun scratch("made-up-number-shown");
  scratch.run("run", settings_with({}));
  RunSet runs({scratch.root() / "run"});
  runs.read_all();
  std::string text = whole_body(prometheus_pieces(runs, 0));
  EXPECT_NE(text.find("# HELP sextant_worst_part Largest loss that a rank adds for one microbatch, summed over its "
                      "tokens. Unit: nats.\n# TYPE sextant_worst_part gauge\nsextant_worst_part{run=\"run\"} "),
            text.npos)
      << text;
  ASSERT_EQ(write_tensorboard(runs, scratch.root() / "tensorboard"), 1U);
  std::string events = read_file(scratch.root() / "tensorboard/run/events.out.tfevents.0.sextant");
  EXPECT_NE(events.find("\x0a\x0aworst_part\x15"), events.npos) << "a tag of ten letters, and a float";
}

}  // namespace
}  // namespace sextant
