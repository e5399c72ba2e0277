// A batch of a token that the model has never seen ruins a run. With a policy for spikes it does not, and the policy
// decides the same on every mesh and after a resume.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "events/run_event.h"
#include "planted_run.h"
#include "train/save/run_checkpoint.h"
#include "train/save/run_history.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBadStep = 44;

// "skipped_step 44", "rewind 44 to 30, 56 samples from 120": what was decided, without the numbers that led to it.
std::vector<std::string> decisions(const fs::path& out) {
  std::vector<std::string> found;
  for (const RunEvent& event : read_events(out)) {
    if (event.kind == EventKind::spike || event.kind == EventKind::skipped_step)
      found.push_back(fmt::format("{} {}", name_of(event.kind), *event.step));
    if (event.kind == EventKind::rewind)
      found.push_back(fmt::format(
          "rewind {} to {}, {} samples from {}", *event.step, event.details.integer("to_step").value(),
          event.details.integer("skipped_samples").value(), event.details.integer("first_skipped_sample").value()));
  }
  return found;
}

class SpikeRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    runs_ = std::make_unique<PlantedRun>("spikes");
    runs_->plant_bad_step(kBadStep);
  }
  static void TearDownTestSuite() { runs_.reset(); }

  static inline std::unique_ptr<PlantedRun> runs_;
};

const Settings kSkip{"train.spike.action=skip"};
const Settings kRewind{"train.spike.action=rewind", "train.spike.rewind_steps=5", "train.spike.skip_steps=6",
                       "checkpoint.every=10", "checkpoint.keep=0"};

TEST_F(SpikeRun, APolicyKeepsTheLossThatACleanRunReaches) {
  double clean = *runs_->run("clean", "clean.u16", {}).validation_loss;
  double ruined = *runs_->run("ruined", "bad.u16", {}).validation_loss;
  double skipped = *runs_->run("skipped", "bad.u16", kSkip).validation_loss;
  double rewound = *runs_->run("rewound", "bad.u16", kRewind).validation_loss;
  double noise = 0;  // between seeds of the data's order
  for (int seed : {2, 3})
    noise = std::max(
        noise,
        std::abs(clean - *runs_->run(fmt::format("seed{}", seed), "clean.u16", {fmt::format("train.seed={}", seed)})
                              .validation_loss));
  EXPECT_GT(ruined - clean, 3 * noise) << "clean " << clean << ", ruined " << ruined << ", noise " << noise;
  EXPECT_NEAR(skipped, clean, noise);
  EXPECT_NEAR(rewound, clean, 1.5 * noise);
  EXPECT_TRUE(decisions(runs_->out("clean")).empty());
  EXPECT_EQ(decisions(runs_->out("ruined")).front(), "spike 44");
  EXPECT_EQ(decisions(runs_->out("skipped")), (std::vector<std::string>{"skipped_step 44", "spike 44"}));
  // Back to step 30, whose next samples are 120 and so on; up to the spike these are 14 batches of 4.
  EXPECT_EQ(decisions(runs_->out("rewound")),
            (std::vector<std::string>{"spike 44", "rewind 44 to 30, 56 samples from 120"}));
}

TEST_F(SpikeRun, SkippedSamplesAreAccountedFor) {
  runs_->run("accounts", "bad.u16", kRewind);
  RunState state = read_run_state(runs_->out("accounts") / "step-000048");
  EXPECT_EQ(state.step, 48);
  EXPECT_EQ(state.samples, 48 * 4 + 56);
  EXPECT_EQ(state.tokens, 48 * 4 * 16);
  EXPECT_EQ(state.skipped, (std::vector<SkippedSamples>{{.step = 30, .first = 120, .count = 56}}));
  EXPECT_EQ(find_step(runs_->out("accounts"), 30).first_sample, 116);
  EXPECT_EQ(find_step(runs_->out("accounts"), 31).first_sample, 176);
  EXPECT_EQ(find_step(runs_->out("accounts"), 48).first_sample, 244);
  // And where the checkpoints between are gone.
  for (const char* gone : {"step-000010", "step-000020", "step-000030", "step-000040"})
    fs::remove_all(runs_->out("accounts") / gone);
  EXPECT_EQ(find_step(runs_->out("accounts"), 30).first_sample, 116);
  EXPECT_EQ(find_step(runs_->out("accounts"), 31).first_sample, 176);
  // Each step stands once in the metrics.
  std::vector<std::string> steps = runs_->scratch().metric("accounts", "step");
  EXPECT_EQ(steps.size(), 48u);
  EXPECT_EQ(steps.back(), "48");
}

TEST_F(SpikeRun, DecidesTheSameOnEveryMeshAndAfterAResume) {
  for (const auto& [name, policy] : {std::pair{"skip", kSkip}, std::pair{"rewind", kRewind}}) {
    std::string one = fmt::format("{}-one", name);
    runs_->run(one, "bad.u16", with(policy, {"train.steps=46", "train.eval_every=0"}));
    std::vector<std::string> expected = decisions(runs_->out(one));
    ASSERT_FALSE(expected.empty());
    for (const char* mesh : {"mesh.dp=2", "mesh.tp=2", "mesh.pp=2"}) {
      std::string out = fmt::format("{}-{}", name, mesh);
      runs_->run(out, "bad.u16", with(policy, {mesh, "batch.microbatch=1", "train.steps=46", "train.eval_every=0"}));
      EXPECT_EQ(decisions(runs_->out(out)), expected) << out;
    }
    // Stopped two steps before: the window comes from the checkpoint.
    std::string resumed = fmt::format("{}-resumed", name);
    runs_->run(resumed, "bad.u16", with(policy, {"train.steps=42", "train.eval_every=0"}));
    EXPECT_TRUE(decisions(runs_->out(resumed)).empty());
    runs_->run(resumed, "bad.u16", with(policy, {"train.steps=46", "train.eval_every=0"}));
    EXPECT_EQ(decisions(runs_->out(resumed)), expected);
    EXPECT_EQ(runs_->scratch().losses(resumed), runs_->scratch().losses(one)) << resumed;
  }
}

// After a rewind nothing is left of the weights and optimizer states that it went back from.
TEST_F(SpikeRun, RewindIsAResumeWithSamplesLeftOut) {
  Settings adam = with(kRewind, {"optimizer.name=adamw", "optimizer.lr=0.01", "train.steps=46", "train.eval_every=0"});
  runs_->run("adam", "bad.u16", adam);
  ASSERT_EQ(decisions(runs_->out("adam")).back(), "rewind 44 to 30, 56 samples from 120");
  // The checkpoint that the rewind wrote says all of it: another start from it gives the same steps.
  fs::create_directories(runs_->out("again"));
  fs::copy(runs_->out("adam") / "step-000030", runs_->out("again") / "step-000030", fs::copy_options::recursive);
  fs::copy(runs_->out("adam") / "metrics.jsonl", runs_->out("again") / "metrics.jsonl");
  runs_->run("again", "bad.u16", adam);
  EXPECT_EQ(runs_->scratch().losses("again"), runs_->scratch().losses("adam"));
}

TEST_F(SpikeRun, LowersTheRate) {
  runs_->run("lowered", "bad.u16",
             {"train.spike.action=lower_rate", "train.spike.rate_factor=0.1", "train.spike.rate_steps=5",
              "train.steps=52", "train.eval_every=0"});
  std::vector<std::string> rates = runs_->scratch().metric("lowered", "lr");
  ASSERT_EQ(rates.size(), 52u);
  EXPECT_EQ(rates[44], "0.1");
  for (size_t i = 45; i < 50; ++i) EXPECT_NEAR(std::stod(rates[i]), 0.01, 1e-12) << i;
}

}  // namespace
}  // namespace sextant
