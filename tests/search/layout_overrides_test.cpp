// Every layout that a search prints, laid over its config, is accepted and is what was priced: the same step time and
// the same memory to the byte, whatever the config said of mesh and pipeline before.
#include "search/layout_overrides.h"

#include <gtest/gtest.h>

#include <sstream>

#include "config/load.h"
#include "config/resolve.h"
#include "cost/machine_file.h"
#include "cost/planned_target.h"
#include "plan/run_plan.h"
#include "search/search.h"

namespace sextant {
namespace {

constexpr std::string_view kModel =
    "[model]\narchitecture = \"llama\"\nlayers = 4\nhidden = 128\nheads = 4\nffn = 256\nvocab = 512\nmax_seq = 32768\n";

struct Case {
  std::string name, toml;
  std::vector<std::string> only = {};
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

class EveryPrintedLayout : public testing::TestWithParam<Case> {
 protected:
  const std::string toml_ = std::string(kModel) + GetParam().toml;
  const RunConfig run_ = parse_config(toml_, "run.toml");
  const ModelSpec spec_ = resolve_model(run_);
  const Machine machine_ = load_machine("h100-sxm");
  const SoftwareProfile profile_ = own_profile();
  const SearchResult found_ = search_layouts({.run = run_,
                                              .spec = spec_,
                                              .machine = machine_,
                                              .profile = profile_,
                                              .devices = 2,
                                              .limits = LayoutLimits(GetParam().only, "only"),
                                              .token_budget = 1e9});

  void expect_as_priced(const RunConfig& config, const Candidate& priced) const {
    LoweredRun lowered = lower_run(config, spec_, planned_target(profile_));
    RunPlan plan =
        make_plan({.run = config, .lowered = lowered, .machine = &machine_, .profile = &profile_, .token_budget = 1e9});
    ASSERT_TRUE(plan.step) << priced.overrides;
    EXPECT_EQ(plan.step->seconds, priced.seconds) << priced.overrides;
    EXPECT_EQ(plan.peak_bytes, priced.peak_bytes) << priced.overrides;
    EXPECT_DOUBLE_EQ(plan.step->mfu, priced.mfu) << priced.overrides;
    ASSERT_TRUE(priced.economics);
    EXPECT_EQ(plan.economics->days, priced.economics->days) << priced.overrides;
  }
};

TEST_P(EveryPrintedLayout, IsWhatWasPriced) {
  ASSERT_FALSE(found_.best.empty());
  for (const auto* list : {&found_.best, &found_.pareto})
    for (const Candidate& layout : *list)
      expect_as_priced(parse_config(toml_, "run.toml", words_of(layout.overrides)), layout);
  const Candidate& best = found_.best.front();
  expect_as_priced(parse_config(layout_toml(best.config, "written by a test"), "written.toml"), best);
}

INSTANTIATE_TEST_SUITE_P(
    Configs, EveryPrintedLayout,
    testing::Values(
        Case{"defaults", "[batch]\nsequences = 4\nseq = 128\n", {"zero=0", "microbatch=1,2"}},
        Case{"interleaved",
             "[mesh]\npp = 2\ndp = 2\n[pipeline]\nschedule = \"interleaved\"\nchunks = 2\nlayers = \"1,1,1,1\"\n"
             "[batch]\nsequences = 4\nseq = 128\n",
             {"zero=0,1", "recompute=none,full"}},
        Case{"zero3",
             "[mesh]\ndp = 4\nzero = 3\nzero_ranks = 2\n[batch]\nsequences = 8\nseq = 128\n"
             "[train]\nrecompute = \"alternate\"\n",
             {"pp=1", "tp=1"}},
        Case{"sharded",
             "[mesh]\ndp = 2\ntp = 2\nsequence_parallel = true\n[batch]\nsequences = 4\nseq = 128\n",
             {"tp=2"}},
        Case{"context",
             "[mesh]\ncp = 2\ndp = 2\ncontext = \"ulysses\"\n[batch]\nsequences = 4\nseq = 16384\n",
             {"cp=2", "recompute=none,full"}}),
    [](const auto& info) { return info.param.name; });

// On a machine whose Programs are others, such as a CPU's in f32, those are priced.
TEST(LayoutOverrides, TheTargetIsTheOneThatIsPlannedFor) {
  RunConfig run = parse_config(std::string(kModel) + "[batch]\nsequences = 2\nseq = 128\n", "run.toml");
  ModelSpec spec = resolve_model(run);
  Machine machine = load_machine("h100-sxm");
  SoftwareProfile profile = own_profile();
  Target target = planned_target(profile);
  target.computes_in = {DType::f32};
  SearchResult found = search_layouts(
      {.run = run, .spec = spec, .machine = machine, .profile = profile, .devices = 1, .target = &target});
  const Candidate& best = found.best.front();
  LoweredRun lowered = lower_run(best.config, spec, target);
  RunPlan plan = make_plan({.run = best.config, .lowered = lowered, .machine = &machine, .profile = &profile});
  EXPECT_EQ(plan.step->seconds, best.seconds);
  EXPECT_EQ(plan.peak_bytes, best.peak_bytes);
}

// A key that the config has is printed even where the layout leaves it at its default.
TEST(LayoutOverrides, KeysOfTheConfigAreSetBack) {
  RunConfig run =
      parse_config(std::string(kModel) +
                       "[mesh]\npp = 2\n[pipeline]\nschedule = \"interleaved\"\nchunks = 2\nlayers = \"1,1,1,1\"\n",
                   "run.toml");
  std::string text = layout_overrides(run, with_choice(run, {.mesh = {.dp = 4}}));
  for (const char* pair : {"mesh.dp=4", "mesh.pp=1", "pipeline.schedule=1f1b", "pipeline.chunks=1", "pipeline.layers="})
    EXPECT_NE((text + " ").find(std::string(pair) + " "), std::string::npos) << pair << " in " << text;
  EXPECT_EQ(text.find("zero_ranks"), std::string::npos) << text;
}

}  // namespace
}  // namespace sextant
