// An axis that only this file knows, as docs/extend/axis.md describes it: its AxisDef and the mesh it stands in are all
// that is added. Training, checkpoints and resuming follow from its role and flags.
#include <gtest/gtest.h>

#include <chrono>

#include "ckpt/model_weights.h"
#include "comm/run_ranks.h"
#include "comm/tags.h"
#include "config/mesh_axes.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "mesh_cases.h"
#include "ops/ops.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"
#include "train/health/replica_check.h"
#include "train/save/run_checkpoint.h"
#include "train/trainer.h"

namespace sextant {
namespace {

constexpr AxisDef kIsland{.name = "island", .role = AxisRole::data};
constexpr AxisDef kShelf{.name = "shelf", .role = AxisRole::data, .zero_shards = true};
constexpr AxisDef kSlice{.name = "slice", .role = AxisRole::tensor};
constexpr AxisDef kFloor{.name = "floor", .role = AxisRole::pipeline, .norm_parts = true};

const AxisDef* find_any_axis(std::string_view name) {
  for (const AxisDef* own : {&kIsland, &kShelf, &kSlice, &kFloor})
    if (own->name == name) return own;
  return find_axis(name);
}

struct AxisCase {
  const char* name;
  Mesh mesh;
  std::vector<std::string> settings = {};
};

void PrintTo(const AxisCase& axis, std::ostream* out) {
  *out << axis.name;
}

const Mesh kIslandMesh{{{"pp", 1}, {kIsland, 2}, {"dp", 1}, {"cp", 1}, {"tp", 2}}};
const Mesh kShelfMesh{{{"pp", 1}, {kShelf, 2}, {"tp", 2}}};

std::vector<AxisCase> axis_cases() {
  return {{"island_zero0", kIslandMesh},
          {"island_zero3_dp2", {{{kIsland, 2}, {"dp", 2}, {"tp", 2}}}, {"mesh.zero=3"}},
          {"shelf_zero1", kShelfMesh, {"mesh.zero=1"}},
          {"shelf_zero2", kShelfMesh, {"mesh.zero=2"}},
          {"shelf_zero3", kShelfMesh, {"mesh.zero=3"}},
          {"shelf_zero3_sp", kShelfMesh, {"mesh.zero=3", "mesh.sequence_parallel=true"}},
          {"slice_tp2", {{{"pp", 1}, {kSlice, 2}, {"tp", 2}}}},
          {"floor_island", {{{kFloor, 2}, {kIsland, 2}}}}};
}

constexpr int kSteps = 4, kSaved = 2;

class MadeUpAxis : public testing::TestWithParam<AxisCase> {
 protected:
  static ScratchRun& scratch() {
    static ScratchRun run("axis");
    return run;
  }

  static RunConfig config(const std::vector<std::string>& more) {
    std::vector<std::string> settings = common_settings();
    for (const char* own : {"model.layers=2", "batch.sequences=4", "batch.seq=16", "train.eval_every=0"})
      settings.emplace_back(own);
    settings.insert(settings.end(), more.begin(), more.end());
    return scratch().config("tiny-llama.toml", settings);
  }

  struct Steps {
    int first = 1, last = kSteps;
    std::filesystem::path from = {}, to = {};  // checkpoints; empty: none
  };

  // The loss of each step.
  static std::vector<double> train_on(const Mesh& mesh, const std::vector<std::string>& settings, const Steps& steps) {
    RunConfig run = config(settings);
    ModelSpec spec = resolve_spec(run);
    Optimizer optimizer = optimizer_of(run);
    RunPrograms programs = build_programs(run, run_shape(run, spec, mesh), cpu_target(1));
    ThreadTeam readers(1);
    Dataset dataset = open_dataset(run, spec, readers, [](std::string_view) {});
    std::vector<double> losses;
    int ranks = mesh.world_size();
    ThreadHub hub(ranks, std::chrono::seconds(60));
    for (const RankEnd& end : run_ranks(hub, ranks, [&](Transport& transport) {
           auto executor = make_cpu_executor(1, {transport.rank(), &transport});
           HostGroup group(transport, kHostTag);
           Trainer trainer({run, programs, dataset, *executor, group});
           if (steps.from.empty())
             initialize_weights(trainer.bound(), 1);
           else
             EXPECT_EQ(load_run_checkpoint(steps.from, trainer.bound(), spec, optimizer).step, steps.first - 1);
           for (int step = steps.first; step <= steps.last; ++step) {
             trainer.begin_step(step, (step - 1) * run.batch.sequences);
             double loss = trainer.finish_step()[number::loss];
             if (group.leads()) losses.push_back(loss);
           }
           ReplicaCheck(trainer.bound(), &transport, SameWork::same_bits).check_all();
           if (steps.to.empty()) return;
           int64_t samples = steps.last * run.batch.sequences;
           RunState state{.step = steps.last, .samples = samples, .tokens = samples * run.batch.seq, .identity = {}};
           EXPECT_EQ(save_run_checkpoint(steps.to,
                                         {trainer.bound(), spec, optimizer, dataset.tokenizer.get(), {}, state}, group),
                     "");
         }))
      EXPECT_EQ(end.error, "") << mesh.text();
    return losses;
  }

  static std::filesystem::path saved_by_one_rank() {
    static const std::filesystem::path saved = [] {
      std::filesystem::path to = scratch().root() / "one";
      train_on(mesh_of({}), {}, {.last = kSaved, .to = to});
      return to;
    }();
    return saved;
  }

  static const std::vector<double>& on_one_rank() {
    static const std::vector<double> losses = train_on(mesh_of({}), {}, {});
    return losses;
  }

  // Losses must equal those of one rank, or of another mesh, at the steps after the first `first`.
  static void expect_losses(const std::vector<double>& losses, size_t first, const std::string& where) {
    ASSERT_EQ(first + losses.size(), on_one_rank().size()) << where;
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], on_one_rank()[first + i], 1e-5 * on_one_rank()[first + i])
          << where << " step " << first + i + 1;
  }
};

TEST_P(MadeUpAxis, TrainsSavesAndResumes) {
  const AxisCase& own = GetParam();
  std::filesystem::path saved = scratch().root() / own.name;
  std::vector<double> whole = train_on(own.mesh, own.settings, {});
  expect_losses(whole, 0, "whole");

  std::vector<double> losses = train_on(own.mesh, own.settings, {.last = kSaved, .to = saved});
  for (double loss : train_on(own.mesh, own.settings, {.first = kSaved + 1, .from = saved})) losses.push_back(loss);
  EXPECT_EQ(losses, whole) << "resumed where it was saved, bit for bit";

  expect_losses(train_on(mesh_of({}), {}, {.first = kSaved + 1, .from = saved}), kSaved, "resumed on one rank");
  expect_losses(train_on(mesh_of({.dp = 2, .tp = 2}), {}, {.first = kSaved + 1, .from = saved}), kSaved,
                "resumed on dp2 tp2");
  expect_losses(train_on(own.mesh, own.settings, {.first = kSaved + 1, .from = saved_by_one_rank()}), kSaved,
                "resumed from one rank's");
}

INSTANTIATE_TEST_SUITE_P(Axes, MadeUpAxis, testing::ValuesIn(axis_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// ZeRO shards optimizer state over an axis that says so, and over no other; a printed Program reads back.
TEST_F(MadeUpAxis, IsLoweredByItsFlags) {
  for (const AxisCase& own : axis_cases()) {
    RunConfig run = config(own.settings);
    Program program = build_programs(run, run_shape(run, resolve_spec(run), own.mesh), cpu_target(1)).train[0];
    std::string text = print(program);
    EXPECT_EQ(print(parse_program(text, find_op, find_any_axis)), text) << own.name;
    EXPECT_NE(text.find("mesh " + own.mesh.text()), std::string::npos);
    for (const Value& value : program.values) {
      if (value.kind != ValueKind::state) continue;
      for (int axis : program[value.of].data_axes)
        EXPECT_EQ(value.layout.at(axis).kind == StateKind::sharded, run.mesh.zero > 0 && own.mesh.def(axis).zero_shards)
            << own.name << " " << value.path << " " << own.mesh.name(axis);
    }
  }
}

}  // namespace
}  // namespace sextant
