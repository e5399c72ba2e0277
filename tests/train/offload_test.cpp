// Offload changes where bytes are and who updates them, and no number: losses bit for bit as without it, on every kind
// of mesh; bytes of every space as planned; checkpoints that go from one to the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "base/error.h"
#include "comm/ranks.h"
#include "cost/machine_file.h"
#include "ir/lane.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "mesh_cases.h"
#include "nvme_here.h"
#include "ops/ops.h"
#include "plan/run_plan.h"
#include "run/resolve_spec.h"
#include "run/run_target.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"
#include "targets/cuda/cuda_target.h"
#include "train/data/dataset.h"
#include "train/trainer.h"

namespace sextant {
namespace {

using Settings = std::vector<std::string>;

Settings offload_settings(const Settings& more = {}) {
  Settings settings = common_settings();
  for (const char* own :
       {"train.steps=4", "train.eval_every=4", "batch.sequences=4", "checkpoint.every=2", "checkpoint.keep=0"})
    settings.emplace_back(own);
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

Settings and_more(Settings settings, const Settings& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

const std::vector<MeshCase>& offload_meshes() {
  static const std::vector<MeshCase> meshes{
      {"one", {}},
      {"one_microbatch", {"batch.microbatch=4"}},
      {"no_overlap", {"mesh.dp=2", "mesh.overlap=false"}},
      {"dp2", {"mesh.dp=2"}},
      {"zero1", {"mesh.dp=2", "mesh.zero=1"}},
      {"zero2", {"mesh.dp=2", "mesh.zero=2"}},
      {"zero3", {"mesh.dp=2", "mesh.zero=3"}},
      {"tp2", {"mesh.tp=2"}},
      {"pp2", {"mesh.pp=2"}},
      {"pp2_zb_h1", {"mesh.pp=2", "pipeline.schedule=zb-h1"}},
      {"dualpipev", {"mesh.pp=2", "pipeline.schedule=dualpipev", "pipeline.chunks=2", "model.layers=8"}},
      {"recomputed", {"train.recompute=full"}},
      {"combined", {"pipeline.schedule=combined-1f1b"}},
  };
  return meshes;
}

// State in a file, where the kernel allows io_uring.
const Settings& on_nvme() {
  static const Settings settings{"offload.optimizer=true", "offload.to=nvme", "offload.path=" + nvme_directory()};
  return settings;
}

const std::vector<MeshCase>& offloads() {
  static const std::vector<MeshCase> kinds = [] {
    std::vector<MeshCase> all{
        {"optimizer", {"offload.optimizer=true"}},
        {"all", {"offload.optimizer=true", "offload.activations=block"}},
        {"streamed", {"offload.optimizer=true", "offload.activations=block", "offload.working_weights=true"}}};
    if (why_no_nvme()) return all;
    all.push_back({"nvme", on_nvme()});
    all.push_back({"nvme_streamed", and_more(on_nvme(), {"offload.working_weights=true"})});
    return all;
  }();
  return kinds;
}

// One mesh is enough: streaming and the file touch different operands of a step.
bool is_left_out(const MeshCase& mesh, const MeshCase& kind) {
  return kind.name == std::string_view("nvme_streamed") && mesh.name != std::string_view("zero1");
}

bool is_refused(const MeshCase& mesh, const MeshCase& kind) {
  return std::ranges::count(mesh.settings, "mesh.zero=3") > 0 &&
         std::ranges::count(kind.settings, "offload.working_weights=true") > 0;
}

TEST(Offload, LossesAreTheSameBitForBit) {
  ScratchRun scratch("offload");
  for (const MeshCase& mesh : offload_meshes()) {
    std::string plain = std::string("plain-") + mesh.name;
    scratch.run(plain, offload_settings(mesh.settings));
    for (const MeshCase& kind : offloads()) {
      if (is_refused(mesh, kind) || is_left_out(mesh, kind)) continue;
      std::string out = fmt::format("{}-{}", kind.name, mesh.name);
      SCOPED_TRACE(out);
      scratch.run(out, and_more(offload_settings(mesh.settings), kind.settings));
      EXPECT_EQ(scratch.losses(out), scratch.losses(plain));
      EXPECT_EQ(scratch.metric(out, "grad_norm"), scratch.metric(plain, "grad_norm"));
      EXPECT_EQ(scratch.metric(out, "validation_loss"), scratch.metric(plain, "validation_loss"));
      for (const char* file : {"model.safetensors", "optimizer.safetensors"})
        EXPECT_EQ(read_file(scratch.root() / out / "step-000004" / file),
                  read_file(scratch.root() / plain / "step-000004" / file));
    }
  }
}

TEST(Offload, ResumesAcrossIt) {
  ScratchRun scratch("offload-resume");
  const Settings on{"offload.optimizer=true"}, streamed{"offload.optimizer=true", "offload.working_weights=true"};
  struct Change {
    const char* name;
    Settings first, second;
  };
  scratch.run("whole", offload_settings());
  std::vector<Change> changes{
      {"from", on, {}}, {"to", {}, on}, {"from-streamed", streamed, {}}, {"to-streamed", {}, streamed}};
  if (!why_no_nvme()) changes.push_back({"from-nvme", on_nvme(), {}}), changes.push_back({"to-nvme", {}, on_nvme()});
  for (const auto& [out, first, second] : changes) {
    scratch.run(out, and_more(offload_settings(), first));
    std::filesystem::remove_all(scratch.root() / out / "step-000004");
    scratch.run(out, and_more(offload_settings(), second));
    EXPECT_EQ(scratch.losses(out), scratch.losses("whole")) << out;
  }
}

TEST(Offload, BytesOfEverySpaceAreThePlans) {
  ScratchRun scratch("offload-bytes");
  auto say = [](std::string_view) {};
  for (const MeshCase& mesh : offload_meshes())
    for (const MeshCase& kind : offloads()) {
      if (is_refused(mesh, kind)) continue;
      SCOPED_TRACE(fmt::format("{} {}", mesh.name, kind.name));
      RunConfig run = scratch.config("tiny-llama.toml", and_more(offload_settings(mesh.settings), kind.settings));
      ModelSpec spec = resolve_spec(run);
      ThreadTeam team(1);
      Dataset dataset = open_dataset(run, spec, team, say);
      int ranks = run_shape(run, spec).mesh.world_size();
      LoweredRun lowered = lower_run(run, spec, cpu_target(threads_per_rank(run, ranks)));
      RunPlan plan = make_plan({.run = run, .lowered = lowered});
      std::vector<std::tuple<int64_t, int64_t, int64_t>> allocated(static_cast<size_t>(ranks));
      run_ranks({}, {ranks, std::chrono::seconds(60)}, [&](const RankContext& context) {
        std::unique_ptr<Executor> executor = make_cpu_executor(threads_per_rank(run, ranks), context);
        HostGroup group = context.transport ? HostGroup(*context.transport, 2) : HostGroup();
        Trainer trainer({run, lowered.programs, dataset, *executor, group});
        allocated[static_cast<size_t>(context.rank)] = {trainer.arena_bytes(), trainer.host_arena_bytes(),
                                                        trainer.nvme_arena_bytes()};
      });
      for (int rank = 0; rank < ranks; ++rank) {
        const RankClass& planned = plan.classes[static_cast<size_t>(stage_rank_of(lowered.shape.mesh, rank))];
        EXPECT_EQ(allocated[static_cast<size_t>(rank)],
                  std::tuple(planned.memory.total(), planned.host.total(), planned.nvme_bytes));
        EXPECT_GT(planned.host.total(), 0);
      }
    }
}

// Two f32 moments of every weight, by the closed form, in rows of 64 bytes.
TEST(Offload, OptimizerStateIsOnTheHost) {
  ScratchRun scratch("offload-state");
  auto plan_with = [&](const Settings& more) {
    RunConfig run = scratch.config("tiny-llama.toml", offload_settings(more));
    ModelSpec spec = resolve_spec(run);
    LoweredRun lowered = lower_run(run, spec, cpu_target(1));
    return std::pair(make_plan({.run = run, .lowered = lowered}), std::move(lowered));
  };
  auto [plain, before] = plan_with({});
  auto [plan, lowered] = plan_with({"offload.optimizer=true"});
  EXPECT_EQ(plan.classes[0].memory.optimizer, 0);
  EXPECT_EQ(plan.classes[0].host.optimizer, plain.classes[0].memory.optimizer);
  int64_t states = 0;
  for (const Value& value : lowered.programs.train[0].values)
    if (value.kind == ValueKind::parameter) states += 2 * round_up(value.local_bytes().n, 64);
  EXPECT_EQ(plan.classes[0].host.optimizer, states);
  EXPECT_LT(plan.peak_bytes, plain.peak_bytes);
}

// A bf16 run of the GPU: the low halves go too where that is asked for, and nothing on the host is left on the device.
TEST(Offload, MasterWeightsGoToTheHost) {
  ScratchRun scratch("offload-weights");
  auto program_with = [&](const Settings& more) {
    RunConfig run = scratch.config("tiny-llama.toml", offload_settings(more));
    LoweredRun lowered = lower_run(run, resolve_spec(run), cuda_target(Determinism::repeatable), Checks::each_pass);
    return std::move(lowered.programs.train[0]);
  };
  Program state = program_with({"offload.optimizer=true"});
  Program both = program_with({"offload.optimizer=true", "offload.weights=true"});
  int64_t low = 0;
  for (const Value& value : both.values) {
    if (value.kind != ValueKind::low_bits) continue;
    EXPECT_EQ(value.space, MemorySpace::host) << value.path;
    low += round_up(value.local_bytes().n, 256);
  }
  EXPECT_GT(low, 0);
  EXPECT_EQ(state.persistent_bytes - both.persistent_bytes, low);
  EXPECT_EQ(both.host_arena.persistent - state.host_arena.persistent, low);
  EXPECT_EQ(print(parse_program(print(both), find_op)), print(both));
  for (const Region& region : both.regions)
    for (const Op& op : region.ops) {
      if (op.def->between_spaces) continue;
      EXPECT_EQ(space_of(both, op) == MemorySpace::host, op.def->name == "adamw") << op.path;
    }
}

// Gradients go down while backward runs, weights come back while the update goes on.
TEST(Offload, CopiesRunBesideCompute) {
  ScratchRun scratch("offload-lanes");
  RunConfig run = scratch.config("tiny-llama.toml", offload_settings({"offload.optimizer=true"}));
  Program program = std::move(lower_run(run, resolve_spec(run), cpu_target(1)).programs.train[0]);
  int beside = 0, behind_backward = 0, copies = 0, parameters = 0;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) {
      if (!op.def->between_spaces) continue;
      ++copies;
      beside += on_comm_lane(op) ? 1 : 0;
      behind_backward += region.kind == RegionKind::backward ? 1 : 0;
      EXPECT_TRUE(region.kind == RegionKind::update || last_microbatch_only(op)) << op.path;
    }
  for (const Value& value : program.values) parameters += value.kind == ValueKind::parameter ? 1 : 0;
  EXPECT_EQ(behind_backward, parameters);
  EXPECT_EQ(copies, 3 * parameters + 3);  // gradient down, weight down and back; lr, scale, step
  EXPECT_EQ(beside, copies - 4);          // but the numbers, and the last
}

// Of a block that is far from its backward the device keeps nothing: the more layers, the more goes to the host and no
// more stays.
TEST(Offload, ActivationsOfBlocksLeaveTheDevice) {
  ScratchRun scratch("offload-activations");
  auto plan_with = [&](int layers, const char* kept) {
    RunConfig run = scratch.config("tiny-llama.toml", offload_settings({fmt::format("model.layers={}", layers),
                                                                        fmt::format("offload.activations={}", kept)}));
    LoweredRun lowered = lower_run(run, resolve_spec(run), cpu_target(1));
    const Program& program = lowered.programs.train[0];
    return std::pair(program.arena_bytes - program.persistent_bytes, program.host_arena.all);
  };
  auto [six, six_away] = plan_with(6, "block");
  auto [ten, ten_away] = plan_with(10, "block");
  int64_t each = plan_with(10, "none").first - plan_with(9, "none").first;  // what a block saves
  EXPECT_GT(each, 0);
  EXPECT_EQ(ten, six);
  EXPECT_EQ(ten_away - six_away, 4 * each);
}

TEST(Offload, PlanPricesTheHostLink) {
  ScratchRun scratch("offload-price");
  auto plan_on = [&](Machine machine, const Settings& more) {
    RunConfig run = scratch.config("tiny-llama.toml", offload_settings(more));
    LoweredRun lowered = lower_run(run, resolve_spec(run), cuda_target(Determinism::fast));
    SoftwareProfile profile;
    return make_plan({.run = run, .lowered = lowered, .machine = &machine, .profile = &profile});
  };
  const Settings on{"offload.optimizer=true", "offload.weights=true"};
  Machine fast = load_machine("h200"), slow = fast, unknown = fast;
  slow.host.link_bytes_per_s /= 100;
  unknown.host = {};
  double plain = plan_on(fast, {}).step->seconds, offloaded = plan_on(fast, on).step->seconds;
  EXPECT_GT(offloaded, plain);
  EXPECT_GT(plan_on(slow, on).step->seconds, offloaded);
  EXPECT_THROW(plan_on(unknown, on), UserError);
  EXPECT_EQ(plan_on(unknown, {}).step->seconds, plain);
  Machine alone = fast;  // one device has all of its host, however many there could be
  alone.devices_per_node = 1;
  EXPECT_EQ(plan_on(alone, on).step->seconds, offloaded);
  Machine small = fast;
  small.host.memory_bytes = 1000;
  EXPECT_FALSE(plan_on(small, on).fits());
}

TEST(Offload, RefusesWhatItCannotDo) {
  ScratchRun scratch("offload-refusals");
  auto refused = [&](const Settings& settings, std::string_view key) {
    try {
      RunConfig run = scratch.config("tiny-llama.toml", offload_settings(settings));
      lower_run(run, resolve_spec(run), cpu_target(1));
    } catch (const UserError& error) {
      return std::string(error.what()).find(key) != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(refused({"offload.optimizer=true", "optimizer.name=lion"}, "offload.optimizer"));
  EXPECT_TRUE(refused({"offload.optimizer=true", "optimizer.state=int8"}, "offload.optimizer"));
  EXPECT_TRUE(refused({"offload.optimizer=true", "train.master_weights=bf16"}, "offload.optimizer"));
  EXPECT_TRUE(refused({"offload.weights=true"}, "offload.weights"));
  EXPECT_TRUE(refused({"offload.optimizer=true", "offload.weights=true"}, "offload.weights"));  // f32 on the CPU
  EXPECT_TRUE(refused({"offload.optimizer=true", "offload.to=nvme"}, "offload.path"));
  EXPECT_TRUE(refused({"offload.to=nvme", "offload.path=/tmp"}, "offload.to"));
  EXPECT_TRUE(refused({"offload.activations=block", "model.layers=1"}, "offload.activations"));
  EXPECT_TRUE(
      refused({"offload.activations=block", "offload.optimizer=true", "offload.working_weights=true", "model.layers=1"},
              "offload.activations"));
  EXPECT_TRUE(refused({"offload.working_weights=true"}, "offload.working_weights"));
  EXPECT_TRUE(refused({"offload.working_weights=true", "offload.optimizer=true", "mesh.dp=2", "mesh.zero=3"},
                      "offload.working_weights"));
}

}  // namespace
}  // namespace sextant
