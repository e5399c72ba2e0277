// Rows for experts of other ranks below what a routing asks for (mesh.expert_capacity): what is lost is counted to the
// row, the step that lost it changes nothing, and the repeated one has the bits of a run with rows for every routing.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "ckpt/model_weights.h"
#include "comm/run_ranks.h"
#include "comm/tags.h"
#include "config/mesh_axes.h"
#include "forwarding_executor.h"
#include "mesh_cases.h"
#include "ops/lost_rows.h"
#include "plan/run_plan.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"
#include "train/health/repeated_steps.h"
#include "train/trainer.h"

namespace sextant {
namespace {

constexpr int kSteps = 3;
constexpr int64_t kLayers = 2, kSequences = 8, kSeq = 16, kPerToken = 2;

enum class Routing : uint8_t {
  as_it_comes,
  to_two_experts,  // all tokens, so that ranks which hold others get none
};

using Kept = std::map<std::string, std::vector<std::byte>>;  // by rank and path

void add_kept(const Bound& bound, Kept& kept) {
  for (const Value& value : bound.program().values) {
    bool stays = value.kind == ValueKind::parameter || value.kind == ValueKind::state;
    if (!stays || value.buffer < 0) continue;
    std::vector<std::byte>& bytes = kept[fmt::format("{} {}", bound.rank(), value.path)];
    bytes.resize(static_cast<size_t>(value.local_bytes().n));
    bound.read(value, bytes);
  }
}

// Of the largest of a rank's Programs.
int64_t largest_of(const RunPrograms& programs) {
  int64_t bytes = programs.train[0].arena_bytes;
  for (const RunPrograms::Repeat& repeat : programs.repeat) bytes = std::max(bytes, repeat.programs[0].arena_bytes);
  return bytes;
}

// Counts the updates that were asked for: one for each attempt at a step.
class CountingBound final : public ForwardingBound {
 public:
  CountingBound(std::unique_ptr<Bound> bound, int& updates) : ForwardingBound(std::move(bound)), updates_(updates) {}
  void run(std::span<const Action> unit, Trace* trace) override {
    for (const Action& action : unit) updates_ += action.region == RegionKind::update ? 1 : 0;
    ForwardingBound::run(unit, trace);
  }

 private:
  int& updates_;
};

struct Outcome {
  Kept kept;
  std::vector<int> attempts;       // at each step
  std::vector<StepMetrics> steps;  // of rank 0
  int64_t arena_bytes = 0;
};

// On each way that tokens take to experts: what is lost and how it is served again differs.
class ExpertCapacity : public testing::TestWithParam<std::tuple<MeshCase, const char*>> {
 protected:
  static ScratchRun& scratch() {
    static ScratchRun run("expert-capacity");
    return run;
  }

  // DeepSeek-V3's router in a small model: its bias is part of what a discarded step leaves alone.
  static ModelSpec spec_of(const RunConfig& run) {
    ModelSpec spec = resolve_spec(run);
    if (spec.architecture == "gpt_oss") return spec;
    ExpertsSpec& experts = *spec.experts;
    experts.score = ExpertScore::sigmoid;
    experts.correction_bias = true;
    experts.bias_update_speed = 0.01;
    experts.z_loss = 0.001;
    return spec;
  }

  static RunConfig config(const std::vector<std::string>& more) {
    std::vector<std::string> settings = common_settings();
    for (std::string own : {fmt::format("model.layers={}", kLayers), fmt::format("batch.sequences={}", kSequences),
                            fmt::format("batch.seq={}", kSeq), std::string("model.experts.count=8"),
                            std::string("model.experts.balance_loss=0.02"), std::string("train.eval_every=0")})
      settings.push_back(std::move(own));
    settings.insert(settings.end(), more.begin(), more.end());
    return scratch().config("tiny-moe.toml", settings);
  }

  // Everyone's first choices, whatever the scores are.
  static void choose_two(Bound& bound) {
    std::vector<float> bias{100, 99, 0, 0, 0, 0, 0, 0};
    for (const Value& value : bound.program().values)
      if (value.kind == ValueKind::parameter && value.path.ends_with("router.correction"))
        bound.write(value, std::as_bytes(std::span(bias)));
  }

  using Change = std::function<void(RunPrograms&)>;

  static Outcome train_with(const std::vector<std::string>& settings, Routing routing, const Change& change = {},
                            int steps = kSteps) {
    RunConfig run = config(settings);
    ModelSpec spec = spec_of(run);
    RunShape shape = run_shape(run, spec);
    RunPrograms programs = build_programs(run, shape, cpu_target(1));
    if (change) change(programs);
    ThreadTeam readers(1);
    Dataset dataset = open_dataset(run, spec, readers, [](std::string_view) {});
    int ranks = shape.mesh.world_size();
    Outcome outcome;
    std::mutex adding;
    ThreadHub hub(ranks, std::chrono::seconds(60));
    for (const RankEnd& end : run_ranks(hub, ranks, [&](Transport& transport) {
           int updates = 0;
           ForwardingExecutor executor(make_cpu_executor(1, {transport.rank(), &transport}),
                                       [&](std::unique_ptr<Bound> bound) {
                                         return std::make_unique<CountingBound>(std::move(bound), updates);
                                       });
           HostGroup group(transport, kHostTag);
           Trainer trainer({run, programs, dataset, executor, group});
           initialize_weights(trainer.bound(), 1);
           if (routing == Routing::to_two_experts) choose_two(trainer.bound());
           std::vector<StepMetrics> metrics;
           std::vector<int> attempts;
           for (int step = 1; step <= steps; ++step) {
             trainer.begin_step(step, (step - 1) * run.batch.sequences);
             metrics.push_back(trainer.finish_step());
             attempts.push_back(std::exchange(updates, 0));
           }
           std::lock_guard lock(adding);
           add_kept(trainer.bound(), outcome.kept);
           if (transport.rank() == 0)
             outcome.steps = metrics, outcome.attempts = attempts, outcome.arena_bytes = trainer.arena_bytes();
         }))
      EXPECT_EQ(end.error, "");
    return outcome;
  }

  static void expect_same(const Outcome& got, const Outcome& expected) {
    ASSERT_EQ(got.kept.size(), expected.kept.size());
    for (const auto& [path, bytes] : expected.kept) EXPECT_TRUE(got.kept.at(path) == bytes) << path;
    ASSERT_EQ(got.steps.size(), expected.steps.size());
    for (size_t i = 0; i < got.steps.size(); ++i) {
      const StepMetrics &a = got.steps[i], &b = expected.steps[i];
      EXPECT_EQ(a[number::loss], b[number::loss]) << "step " << i + 1;
      EXPECT_EQ(a[number::grad_norm], b[number::grad_norm]) << "step " << i + 1;
      EXPECT_EQ(a.find(number::balance_loss), b.find(number::balance_loss)) << "step " << i + 1;
      EXPECT_EQ(a.find(number::router_z_loss), b.find(number::router_z_loss)) << "step " << i + 1;
      EXPECT_EQ(a[number::expert_load_peak], b[number::expert_load_peak]) << "step " << i + 1;
    }
  }

  static std::vector<std::string> with_capacity(std::vector<std::string> settings, const char* capacity) {
    settings.push_back(fmt::format("mesh.expert_capacity={}", capacity));
    return settings;
  }
  static std::vector<std::string> sent_as(std::vector<std::string> settings, std::string_view dispatch) {
    settings.push_back(fmt::format("mesh.expert_dispatch={}", dispatch));
    return settings;
  }
};

// Four ranks divide the experts and a microbatch is one sequence, which is a group: two experts are all on one rank, so
// 2·seq rows go there, where the balanced load is seq / 2.
struct Lost {
  const char* capacity;
  int64_t rows, rounds;
  int64_t by_tokens;     // rows that are served, where those of a token are not divided
  int64_t token_rounds;  // in which any routing of the tokens is served; these need all of them
};
constexpr Lost kLost[] = {{"1", kSeq / 2, 4, kSeq / 2, 4}, {"1.34", 11, 3, 10, 4}, {"2", kSeq, 2, kSeq, 2}};
constexpr const char* kDispatches[] = {"rows", "tokens", "gather"};

TEST_F(ExpertCapacity, CountsTheExactExcessAndRepeatsWithTheBitsOfTheBound) {
  for (std::string_view dispatch : kDispatches) {
    SCOPED_TRACE(dispatch);
    std::vector<std::string> mesh = sent_as({"mesh.dp=4", "mesh.ep=4"}, dispatch);
    Outcome bound = train_with(mesh, Routing::to_two_experts);
    for (const StepMetrics& m : bound.steps) EXPECT_FALSE(m.find(number::repeated_steps));
    for (const Lost& c : kLost) {
      SCOPED_TRACE(c.capacity);
      Outcome got = train_with(with_capacity(mesh, c.capacity), Routing::to_two_experts);
      expect_same(got, bound);
      int64_t served = dispatch == "tokens" ? c.by_tokens : c.rows;
      for (size_t i = 0; i < got.steps.size(); ++i) {
        const StepMetrics& m = got.steps[i];
        EXPECT_EQ(m[number::lost_rows], kLayers * kSequences * (kPerToken * kSeq - served));
        EXPECT_EQ(m[number::expert_rounds], dispatch == "tokens" ? c.token_rounds : c.rounds);
        EXPECT_EQ(m[number::rounds_needed], c.rounds);
        EXPECT_EQ(got.attempts[i], 2) << "all layers need as many, which the first attempt tells";
        EXPECT_EQ(m[number::repeated_steps], static_cast<int64_t>(i) + 1);
      }
    }
  }
}

// The programs of a run without those that repeat a step: what the discarded attempt alone does.
TEST_F(ExpertCapacity, ADiscardedStepChangesNothing) {
  std::vector<std::string> settings{"mesh.dp=4", "mesh.ep=4", "mesh.expert_capacity=1"};
  auto discard = [](RunPrograms& programs) { programs.repeat.clear(); };
  Kept before = train_with(settings, Routing::to_two_experts, discard, 0).kept;
  EXPECT_TRUE(train_with(settings, Routing::to_two_experts, discard, 2).kept == before);
  EXPECT_FALSE(train_with(settings, Routing::to_two_experts, {}, 1).kept == before) << "the repeated step does";
}

// Every layout, with the routing that comes by itself: where tokens ask for more than the balanced load.
TEST_P(ExpertCapacity, TrainsAsWithRowsForEveryRouting) {
  const auto& [mesh, dispatch] = GetParam();
  std::vector<std::string> settings = sent_as(mesh.settings, dispatch);
  Outcome bound = train_with(settings, Routing::as_it_comes);
  Outcome got = train_with(with_capacity(settings, "1"), Routing::as_it_comes);
  expect_same(got, bound);
  EXPECT_GT(got.steps.back()[number::repeated_steps], 0);
}

std::vector<MeshCase> capacity_cases() {
  std::vector<MeshCase> cases{
      {"microbatch2", {"mesh.dp=4", "mesh.ep=4", "batch.microbatch=2"}},
      {"pp2", {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "batch.sequences=4"}},
      {"pp2_zb_h1", {"mesh.pp=2", "mesh.dp=2", "mesh.ep=2", "pipeline.schedule=zb-h1", "batch.sequences=4"}},
      {"one_expert_per_token", {"mesh.dp=2", "mesh.ep=2", "model.experts.per_token=1", "batch.sequences=4"}},
  };
  for (MeshCase mesh : expert_meshes())
    for (std::string_view name :
         {"dp4_ep4_full", "tp4_etp2_ep2", "cp4_ep4", "zero1_dp4_ep2", "zero3_dp4_ep2", "dp4_tp2_etp2_ep4"}) {
      if (mesh.name != name) continue;
      if (!name.starts_with("zero")) mesh.settings.emplace_back("batch.sequences=4");
      cases.push_back(mesh);
    }
  return cases;
}

std::vector<MeshCase> gathered_cases() {
  std::vector<MeshCase> cases = capacity_cases();
  std::erase_if(cases, [](const MeshCase& mesh) {
    std::string_view name = mesh.name;
    return name != "pp2" && name != "tp4_etp2_ep2" && name != "zero3_dp4_ep2";
  });
  return cases;
}

std::string capacity_case_name(const testing::TestParamInfo<std::tuple<MeshCase, const char*>>& info) {
  return fmt::format("{}_{}", std::get<0>(info.param).name, std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Layouts, ExpertCapacity,
                         testing::Combine(testing::ValuesIn(capacity_cases()), testing::Values("rows", "tokens")),
                         capacity_case_name);
INSTANTIATE_TEST_SUITE_P(Gathered, ExpertCapacity,
                         testing::Combine(testing::ValuesIn(gathered_cases()), testing::Values("gather")),
                         capacity_case_name);

// Experts with biases, whose gradients go on from round to round as those of the other weights do.
TEST_F(ExpertCapacity, GptOssTrainsAsWithRowsForEveryRouting) {
  const std::vector<std::string> model{"model.architecture=gpt_oss", "model.window=8", "batch.sequences=4"};
  for (const MeshCase& mesh : {MeshCase{"dp4_ep4", {"mesh.dp=4", "mesh.ep=4"}},
                               MeshCase{"cp2_ep2", {"mesh.cp=2", "mesh.ep=2", "mesh.context=ulysses"}}})
    for (std::string_view dispatch : kDispatches) {
      SCOPED_TRACE(fmt::format("{} {}", mesh.name, dispatch));
      std::vector<std::string> settings = sent_as(mesh.settings, dispatch);
      settings.insert(settings.end(), model.begin(), model.end());
      Outcome bound = train_with(settings, Routing::as_it_comes);
      Outcome got = train_with(with_capacity(settings, "1"), Routing::as_it_comes);
      expect_same(got, bound);
      EXPECT_GT(got.steps.back()[number::repeated_steps], 0);
    }
}

// Where any routing needs eight rounds, a step has the fewest of 2, 4 and 8 that serve it. What a later layer needs may
// turn out only then, and where tokens are not divided among rounds, so may how they fall: a step is then done a third
// time.
TEST_F(ExpertCapacity, RepeatsInFewRoundsWhereTheyDo) {
  std::set<int64_t> seen;
  int most_attempts = 0;
  for (std::string_view dispatch : {"rows", "tokens"}) {
    SCOPED_TRACE(dispatch);
    std::vector<std::string> settings =
        sent_as({"mesh.dp=8", "mesh.ep=8", "model.experts.count=16", "optimizer.lr=3e-2"}, dispatch);
    Outcome bound = train_with(settings, Routing::as_it_comes, {}, 6);
    auto rounds = [](RunPrograms& programs) {
      ASSERT_EQ(programs.repeat.size(), 3U);
      for (size_t i = 0; i < 3; ++i) EXPECT_EQ(programs.repeat[i].rounds, int64_t{2} << i);
    };
    Outcome got = train_with(with_capacity(settings, "1"), Routing::as_it_comes, rounds, 6);
    expect_same(got, bound);
    for (size_t i = 0; i < got.steps.size(); ++i) {
      const std::optional<int64_t> rounds_done = got.steps[i].find(number::expert_rounds);
      const int64_t needed = got.steps[i][number::rounds_needed];
      if (rounds_done) seen.insert(*rounds_done);
      EXPECT_LE(needed, rounds_done.value_or(1));
      if (rounds_done && dispatch == "rows") {
        EXPECT_TRUE(*rounds_done <= 2 || 2 * needed > *rounds_done) << "fewer would do";
      }
      most_attempts = std::max(most_attempts, got.attempts[i]);
    }
  }
  EXPECT_GE(seen.size(), 2U) << "of 2, 4 and 8";
  EXPECT_TRUE(seen.contains(2) || seen.contains(4));
  EXPECT_GE(most_attempts, 3);
}

TEST_F(ExpertCapacity, RunsRepeat) {
  std::vector<std::string> settings{"mesh.dp=4", "mesh.ep=4", "mesh.expert_capacity=1.34"};
  Outcome first = train_with(settings, Routing::as_it_comes);
  for (int again = 0; again < 2; ++again) expect_same(train_with(settings, Routing::as_it_comes), first);
}

// ZeRO-2 reduces what each round gives by itself: the same up to rounding.
TEST_F(ExpertCapacity, TrainsWithZero2UpToRounding) {
  std::vector<std::string> mesh{"mesh.dp=4", "mesh.ep=2", "mesh.zero=2"};
  Outcome bound = train_with(mesh, Routing::as_it_comes),
          got = train_with(with_capacity(mesh, "1"), Routing::as_it_comes);
  for (size_t i = 0; i < got.steps.size(); ++i)
    EXPECT_NEAR(got.steps[i][number::loss], bound.steps[i][number::loss], 1e-5 * bound.steps[i][number::loss]);
}

// One arena for both Programs, and the plan tells its bytes; fewer rows take less.
TEST_F(ExpertCapacity, MemoryIsThatOfThePlan) {
  for (std::string_view dispatch : kDispatches) {
    SCOPED_TRACE(dispatch);
    std::vector<std::string> settings = sent_as({"mesh.dp=4", "mesh.ep=4"}, dispatch);
    auto planned = [&](const char* capacity) {
      RunConfig run = config(with_capacity(settings, capacity));
      return make_plan({.run = run, .lowered = lower_run(run, spec_of(run), cpu_target(1))});
    };
    int64_t before = planned("0").peak_bytes;
    for (const Lost& c : kLost) {
      SCOPED_TRACE(c.capacity);
      RunPlan plan = planned(c.capacity);
      EXPECT_EQ(word_of(plan.expert_rows->dispatch), dispatch);
      EXPECT_EQ(plan.expert_rows->capacity, c.rows);
      EXPECT_EQ(plan.expert_rows->most, kPerToken * kSeq);
      EXPECT_EQ(plan.expert_rows->rounds, dispatch == "tokens" ? c.token_rounds : c.rounds);
      EXPECT_LT(plan.peak_bytes, before);
      auto largest = [&](RunPrograms& programs) {
        EXPECT_EQ(programs.arena_bytes(0), largest_of(programs));
        for (const RunPrograms::Repeat& repeat : programs.repeat)
          EXPECT_EQ(programs.train[0].persistent_bytes, repeat.programs[0].persistent_bytes);
        EXPECT_EQ(programs.arena_bytes(0), plan.peak_bytes);
      };
      EXPECT_EQ(train_with(with_capacity(settings, c.capacity), Routing::to_two_experts, largest, 1).arena_bytes,
                plan.peak_bytes);
    }
  }
}

// A capacity that no routing exceeds plans neither counters nor a second Program.
TEST_F(ExpertCapacity, ThatIsNeverExceededPlansNothingMore) {
  RunConfig run = config({"mesh.dp=4", "mesh.ep=4", "mesh.expert_capacity=4"});
  RunPrograms programs = build_programs(run, run_shape(run, spec_of(run)), cpu_target(1));
  EXPECT_TRUE(programs.repeat.empty());
  EXPECT_EQ(programs.train[0].find(kLostRowsPath), nullptr);
}

TEST_F(ExpertCapacity, RunsGoOnFromCheckpointsAndEvaluateAllTokens) {
  std::vector<std::string> settings{"mesh.dp=4",
                                    "mesh.ep=4",
                                    "train.steps=4",
                                    "train.eval_every=2",
                                    "checkpoint.every=2",
                                    "batch.microbatch=1",
                                    "batch.seq=16",
                                    "optimizer.lr=1e-3",
                                    "optimizer.schedule=constant",
                                    "mesh.expert_dispatch=rows"};
  scratch().run("bound", settings, "tiny-moe.toml");
  settings.emplace_back("mesh.expert_capacity=1");
  scratch().run("whole", settings, "tiny-moe.toml");
  settings[2] = "train.steps=2";
  scratch().run("parts", settings, "tiny-moe.toml");
  settings[2] = "train.steps=4";
  scratch().run("parts", settings, "tiny-moe.toml");
  for (const char* file : {"model.safetensors", "optimizer.safetensors"})
    for (const char* out : {"whole", "parts"})
      EXPECT_TRUE(read_file(scratch().root() / out / "step-000004" / file) ==
                  read_file(scratch().root() / "bound" / "step-000004" / file))
          << out << " " << file;
  EXPECT_EQ(scratch().metric("whole", "validation_loss"), scratch().metric("bound", "validation_loss"));
  EXPECT_EQ(scratch().metric("parts", "loss"), scratch().metric("bound", "loss"));
  EXPECT_EQ(scratch().metric("whole", "repeated_steps").size(), 4U);
  EXPECT_FALSE(scratch().metric("whole", "lost_rows").empty());
}

TEST(RepeatedSteps, WarnWhenThereAreMany) {
  RepeatedSteps steps(1.5);
  auto note = [&](int64_t step, int64_t lost, int64_t rounds) {
    StepMetrics m{.step = step};
    m.values.set(number::lost_rows, lost);
    m.values.set(number::rounds_needed, rounds);
    return steps.note(m);
  };
  for (int64_t step = 1; step <= 40; step += 10) EXPECT_FALSE(note(step, 5, 2)) << "seldom";
  EXPECT_FALSE(note(41, 0, 1));
  EXPECT_FALSE(note(42, 7, 3));
  EXPECT_FALSE(note(43, 7, 2));
  std::optional<std::string> warning = note(44, 7, 2);
  ASSERT_FALSE(warning);
  warning = note(45, 7, 2);
  ASSERT_TRUE(warning);
  EXPECT_NE(warning->find("mesh.expert_capacity=4.5 would"), std::string::npos) << *warning;
  EXPECT_FALSE(note(46, 7, 2)) << "said once";
}

}  // namespace
}  // namespace sextant
