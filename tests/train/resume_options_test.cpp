// Runs with options of a model that are easily lost between a config and a checkpoint: they stop, go on from their own
// checkpoint with the losses of one that never stopped, and write text.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "generate/generator.h"
#include "scratch_run.h"

namespace sextant {
namespace {

struct ResumeCase {
  const char* name;
  std::vector<std::string> settings;
};

void PrintTo(const ResumeCase& c, std::ostream* out) {
  *out << c.name;
}

std::vector<std::string> of_experts(std::string_view architecture, std::vector<std::string> more) {
  more.insert(more.begin(), {fmt::format("model.architecture={}", architecture), "model.experts.count=4",
                             "model.experts.per_token=2"});
  return more;
}

std::vector<std::string> of_latent(std::vector<std::string> more) {
  more.insert(more.begin(), {"model.kv_heads=4", "model.head_dim=24", "model.latent.q_rank=0",
                             "model.latent.kv_rank=16", "model.latent.rope_dim=8", "model.latent.value_dim=16"});
  return of_experts("deepseek_v3", std::move(more));
}

const ResumeCase kCases[] = {
    {"drop_above", of_experts("mixtral", {"model.experts.drop_above=1", "model.experts.drop_policy=position"})},
    {"forced_balance", of_experts("mixtral", {"model.experts.forced_balance=true"})},
    {"one_group", of_latent({"model.experts.groups=1", "model.experts.keep_groups=1"})},
    {"all_groups", of_latent({"model.experts.groups=2", "model.experts.keep_groups=2", "model.experts.group_top=2"})},
    {"first_full_then_alternating", of_experts("gpt_oss", {"model.window=8", "model.full_attention_first=1"})},
    {"every_layer_full", {"model.qk_norm=true", "model.window=8", "model.full_attention_every=1"}},
    {"linear",
     {"model.rope_scaling.factor=2", "model.rope_scaling.type=linear", "model.rope_scaling.original_max_positions=32"}},
    {"usual_multiplier", {"model.architecture=granite", "model.attention_multiplier=0.25"}},
    {"rope_everywhere", of_experts("llama4", {"model.no_rope_every=0", "model.experts.per_token=1"})},
};

class ResumeOptions : public testing::TestWithParam<ResumeCase> {};
INSTANTIATE_TEST_SUITE_P(Trained, ResumeOptions, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ResumeOptions, GoOnFromTheirOwnCheckpointsAndWriteText) {
  ScratchRun scratch(fmt::format("resume-{}", GetParam().name));
  auto run = [&](std::string_view out, int steps) {
    std::vector<std::string> settings{
        "model.layers=3",     "model.hidden=64", "model.heads=4",      "batch.sequences=2",
        "batch.microbatch=1", "batch.seq=32",    "optimizer.warmup=1", "optimizer.schedule=constant",
        "train.eval_every=0"};
    settings.insert(settings.end(), GetParam().settings.begin(), GetParam().settings.end());
    settings.push_back(fmt::format("train.steps={}", steps));
    scratch.run(out, settings);
  };
  run("whole", 4);
  run("stopped", 2);
  run("stopped", 4);
  EXPECT_EQ(scratch.losses("stopped"), scratch.losses("whole"));
  ASSERT_EQ(scratch.losses("whole").size(), 4u);
  auto executor = make_cpu_executor(1, {});
  Generator generator(scratch.root() / "stopped" / "step-000004", *executor, 0);
  int written = 0;
  generator.generate("One day the", {.max_tokens = 4}, [&](uint32_t) { ++written; });
  EXPECT_GT(written, 0);
}

// Each field that differs is named with both values; those of training only may differ.
TEST(ResumeOptions, AnotherModelIsRefusedByName) {
  ScratchRun scratch("resume-other");
  auto run = [&](int steps, const std::vector<std::string>& more) {
    std::vector<std::string> settings = of_experts(
        "mixtral", {"model.layers=2", "model.hidden=64", "model.heads=4", "batch.sequences=2", "batch.microbatch=1",
                    "batch.seq=32", "optimizer.warmup=1", "optimizer.schedule=constant", "model.window=8",
                    "train.eval_every=0", fmt::format("train.steps={}", steps)});
    settings.insert(settings.end(), more.begin(), more.end());
    scratch.run("run", settings);
  };
  run(1, {"model.experts.drop_above=1.5"});
  try {
    run(2, {"model.window=9", "model.rope_scaling.factor=2", "model.rope_scaling.type=linear"});
    ADD_FAILURE() << "another window and another RoPE were taken";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("rope_scaling.type linear differs from the checkpoint's none, "
                        "rope_scaling.factor 2 differs from the checkpoint's unused"),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("window 9 differs from the checkpoint's 8"), std::string::npos)
        << error.what();
  }
  run(2, {"model.experts.balance_loss=0.5", "model.experts.forced_balance=true"});
  EXPECT_EQ(scratch.losses("run").size(), 2u);
}

}  // namespace
}  // namespace sextant
