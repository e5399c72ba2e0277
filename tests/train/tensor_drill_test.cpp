// Causes planted in real runs (train --inject): a layer whose gradients underflow in fp16 and attention logits that
// grow raise their event and no other, and a run that nothing is done to raises none. bench/drift_causes.py does the
// same at length.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "scratch_run.h"
#include "train/faults/fault.h"

namespace sextant {
namespace {

using DrillSettings = std::vector<std::string>;

class TensorDrill : public testing::Test {
 protected:
  // Alarms that are reported for a run's tensors: "underflow 1", with the layer.
  std::vector<std::string> told(const std::string& fault, DrillSettings settings) {
    for (const char* common : {"batch.seq=16", "batch.sequences=2", "batch.microbatch=1", "data.tokenizer_vocab=300",
                               "train.eval_every=0", "checkpoint.at_end=false", "log.tensor_stats_every=1"})
      settings.push_back(common);
    std::string out = fmt::format("run-{}", ++runs_);
    std::vector<Fault> faults;
    if (!fault.empty()) faults.push_back(parse_fault(fault, "--inject"));
    train(scratch_.config("tiny-llama.toml", settings), scratch_.root() / out, cpu_ranks(), {}, {}, faults);
    std::vector<std::string> told;
    std::istringstream lines(read_file(scratch_.root() / out / "events.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json event = nlohmann::json::parse(line);
      if (event.contains("layer"))
        told.push_back(fmt::format("{} {}", event["event"].get<std::string>(), event["layer"].get<int>()));
    }
    return told;
  }

  ScratchRun scratch_{"tensor-drill"};
  int runs_ = 0;
};

TEST_F(TensorDrill, GradientsBehindWeightsThatFadeUnderflow) {
  DrillSettings fp16{"train.precision=fp16", "train.loss_scale.initial=1", "train.steps=5"}, sharded = fp16,
                                                                                             staged = fp16;
  EXPECT_EQ(told("", fp16), DrillSettings{});
  EXPECT_EQ(told("fade_layer@3", fp16), DrillSettings{"underflow 1"});
  sharded.insert(sharded.end(), {"mesh.dp=2", "mesh.zero=3"});
  EXPECT_EQ(told("fade_layer@3", sharded), DrillSettings{"underflow 1"});
  staged.push_back("mesh.pp=2");
  EXPECT_EQ(told("fade_layer@3", staged), DrillSettings{"underflow 1"});
  EXPECT_THROW(told("fade_layer@3:1", sharded), UserError);
}

TEST_F(TensorDrill, LogitsThatGrowAreTold) {
  EXPECT_EQ(told("grow_logits=50@33", {"train.steps=44"}), DrillSettings{"logit_growth 1"});
}

}  // namespace
}  // namespace sextant
