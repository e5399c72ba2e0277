// Every number of a step that is not a time or a size is the same under every schedule and on every mesh as on one rank
// that takes the same tokens at once: the losses of routers and the rows that experts drop come from a microbatch, and
// many of them are under way at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/rng.h"
#include "schedule/schedules.h"
#include "scratch_run.h"

namespace sextant {
namespace {

using Settings = std::vector<std::string>;

// A way to cut the batch: what one rank must take at once to see the same microbatches.
struct MetricsMesh {
  const char* name;
  Settings settings;
  int64_t at_once = 1;  // sequences, over data-parallel ranks
  bool fp8 = false;
  bool always = false;  // beside every schedule that runs a forward beside a backward
};

const std::vector<MetricsMesh>& second_axes() {
  static const std::vector<MetricsMesh> kAxes{
      {"alone", {}},
      {"dp2", {"mesh.dp=2"}, 2},
      {"cp2", {"mesh.cp=2"}, 1, false, true},
      {"tp2", {"mesh.tp=2", "mesh.sequence_parallel=true"}},
      {"dp2_ep2", {"mesh.dp=2", "mesh.ep=2"}, 2},
      {"cp2_ep2", {"mesh.cp=2", "mesh.ep=2"}},
      {"fp8_dp2", {"mesh.dp=2"}, 2, true, true},
      {"fp8_cp2", {"mesh.cp=2"}, 1, true},
  };
  return kAxes;
}

Settings settings_of_steps() {
  return {"model.layers=4",
          "model.hidden=32",
          "model.ffn=48",
          "model.experts.balance_loss=0.1",
          "model.experts.z_loss=0.01",
          "model.experts.drop_above=1",
          "optimizer.eps=1e-6",
          "optimizer.lr=1e-3",
          "optimizer.schedule=constant",
          "batch.sequences=8",
          "batch.microbatch=1",
          "batch.seq=32",
          "train.steps=2",
          "train.eval_every=0",
          "train.timeout_s=60",
          "train.fp8_skip=1",
          "log.tensor_stats_every=2",
          "checkpoint.at_end=false"};
}

// Fields that describe how a run performs on its machine, not what it computes.
bool is_of_the_machine(const std::string& field) {
  static const std::set<std::string> kFields{"step_s",        "tokens_per_s",       "input_s", "processor_s",
                                             "own_s_by_rank", "message_s_by_rank",  "mfu",     "model_flops",
                                             "arena_bytes",   "arena_bytes_by_rank"};
  return kFields.contains(field);
}

std::vector<nlohmann::json> lines_of(const ScratchRun& scratch, const std::string& out) {
  std::vector<nlohmann::json> steps;
  std::istringstream lines(read_file(scratch.root() / out / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) steps.push_back(nlohmann::json::parse(line));
  return steps;
}

struct Tolerance {
  double relative, absolute;
};

// A number between two of fp8 is rounded to the other where sums have another order, and a share counts such elements.
Tolerance tolerance_of(const MetricsMesh& mesh) {
  return mesh.fp8 ? Tolerance{0.02, 1e-3} : Tolerance{1e-4, 1e-9};
}

void expect_near_json(const nlohmann::json& found, const nlohmann::json& expected, const Tolerance& tolerance) {
  ASSERT_EQ(found.is_array(), expected.is_array());
  if (expected.is_array()) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) expect_near_json(found[i], expected[i], tolerance);
    return;
  }
  if (!expected.is_number()) {
    EXPECT_EQ(found, expected);
    return;
  }
  EXPECT_NEAR(found.get<double>(), expected.get<double>(),
              tolerance.relative * std::abs(expected.get<double>()) + tolerance.absolute);
}

class StepMetricsUnder : public testing::TestWithParam<std::string_view> {
 protected:
  static ScratchRun& scratch() {
    static ScratchRun run("step-metrics");
    return run;
  }

  static std::string one_rank(const MetricsMesh& mesh, int64_t at_once, const std::string& scope) {
    std::string out = fmt::format("one-{}-{}{}", at_once, scope, mesh.fp8 ? "-fp8" : "");
    if (!std::filesystem::exists(scratch().root() / out))
      run(out, scope, mesh.fp8, {fmt::format("batch.microbatch={}", at_once)});
    return out;
  }

  static void run(const std::string& out, const std::string& scope, bool fp8, const Settings& more) {
    Settings settings = settings_of_steps();
    settings.push_back("model.experts.balance_scope=" + scope);
    if (fp8) settings.emplace_back("train.precision=fp8");
    settings.insert(settings.end(), more.begin(), more.end());
    scratch().run(out, settings, "tiny-moe.toml");
  }

  static void expect_as_on_one_rank(const ScheduleDef& schedule, int ranks, const MetricsMesh& mesh,
                                    const std::string& scope) {
    Settings settings = mesh.settings;
    settings.push_back(fmt::format("mesh.pp={}", ranks));
    settings.push_back(fmt::format("pipeline.schedule={}", schedule.name));
    settings.push_back(fmt::format("pipeline.chunks={}", schedule.name == "breadth-first" ? 2 : schedule.chunks.least));
    std::string out = fmt::format("{}-pp{}-{}-{}", schedule.name, ranks, mesh.name, scope);
    SCOPED_TRACE(out);
    run(out, scope, mesh.fp8, settings);
    std::vector<nlohmann::json> found = lines_of(scratch(), out),
                                expected = lines_of(scratch(), one_rank(mesh, mesh.at_once * schedule.copies(), scope));
    ASSERT_EQ(found.size(), 2U);
    for (size_t i = 0; i < found.size(); ++i)
      for (const auto& [field, value] : expected[i].items()) {
        if (is_of_the_machine(field)) continue;
        SCOPED_TRACE(fmt::format("{} of step {}", field, i + 1));
        ASSERT_TRUE(found[i].contains(field));
        expect_near_json(found[i][field], value, tolerance_of(mesh));
      }
  }
};

TEST_P(StepMetricsUnder, AreThoseOfOneRank) {
  const ScheduleDef& schedule = *std::ranges::find(kSchedules, GetParam(), &ScheduleDef::name);
  Random random(33, schedule.name);
  uint64_t next = 0;
  auto below = [&](uint64_t n) { return random.below(next++, n); };
  const std::vector<std::string> scopes{"sequence", "layer", "all-layers"};
  for (const MetricsMesh& mesh : second_axes()) {
    const int ranks = schedule.name == "combined-1f1b" && below(2) == 0 ? 1 : 2;
    const std::string& scope = scopes[below(scopes.size())];
    if ((schedule.pairs && mesh.always) || below(5) < 2) expect_as_on_one_rank(schedule, ranks, mesh, scope);
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, StepMetricsUnder, testing::ValuesIn(schedule_names()), [](const auto& info) {
  std::string name(info.param);
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace sextant
