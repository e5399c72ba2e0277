// Optimizer state on NVMe: where it lies, what of the host's memory it passes through, what it costs, and what happens
// when the disk fails. That no number changes is offload_test.cpp's.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "comm/ranks.h"
#include "cost/machine_file.h"
#include "cost/price.h"
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

std::vector<std::string> nvme_settings(const ScratchRun& scratch, const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings = common_settings();
  for (const std::string& own : {std::string("batch.sequences=4"), std::string("offload.optimizer=true"),
                                 std::string("offload.to=nvme"), "offload.path=" + scratch.root().string()})
    settings.push_back(own);
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

// Two f32 moments of every weight by the closed form, in blocks of the file. The host holds operands of a few steps:
// as many for ten layers as for six.
TEST(Nvme, StateIsInTheFileAndTheHostHoldsAWindow) {
  ScratchRun scratch("nvme-window");
  auto program_of = [&](int layers) {
    RunConfig run = scratch.config("tiny-llama.toml", nvme_settings(scratch, {fmt::format("model.layers={}", layers)}));
    LoweredRun lowered = lower_run(run, resolve_spec(run), cpu_target(1), Checks::each_pass);
    return std::move(lowered.programs.train[0]);
  };
  Program six = program_of(6), ten = program_of(10);
  for (const Program* program : {&six, &ten}) {
    int64_t states = 0;
    for (const Value& value : program->values) {
      if (value.kind == ValueKind::parameter) states += 2 * round_up(value.local_bytes().n, kFileBlock);
      if (value.kind != ValueKind::state) continue;
      EXPECT_EQ(value.space, MemorySpace::nvme) << value.path;
    }
    EXPECT_EQ(program->nvme_arena, (ArenaExtent{states, states}));
    EXPECT_EQ(program->host_arena.persistent, 0);
    EXPECT_LT(program->host_arena.all, states / 2);
  }
  EXPECT_EQ(ten.host_arena.all, six.host_arena.all);
  EXPECT_EQ(print(parse_program(print(ten), find_op)), print(ten));
}

// Reads of a step's state are asked for before the step before it runs, and writes follow it, beside compute.
TEST(Nvme, ReadsAheadAndWritesBehind) {
  ScratchRun scratch("nvme-lanes");
  RunConfig run = scratch.config("tiny-llama.toml", nvme_settings(scratch));
  Program program = std::move(lower_run(run, resolve_spec(run), cpu_target(1)).programs.train[0]);
  const std::vector<Op>& ops = program.regions.back().ops;
  ASSERT_EQ(program.regions.back().kind, RegionKind::update);
  std::vector<size_t> steps;
  for (size_t i = 0; i < ops.size(); ++i)
    if (ops[i].def->name == "adamw") steps.push_back(i);
  ASSERT_GT(steps.size(), 2u);
  int reads = 0, writes = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!is_file_copy(program, ops[i])) continue;
    EXPECT_TRUE(on_comm_lane(ops[i]) || i + 1 == ops.size()) << ops[i].path;
    const bool reading = program[ops[i].inputs[0]].space == MemorySpace::nvme;
    ++(reading ? reads : writes);
    size_t touching = 0;  // the step that reads or made the bytes on the host
    ValueId on_host = reading ? ops[i].outputs[0] : ops[i].inputs[0];
    for (; touching < steps.size(); ++touching) {
      const Op& step = ops[steps[touching]];
      if (std::ranges::count(reading ? step.inputs : step.outputs, on_host) > 0) break;
    }
    ASSERT_LT(touching, steps.size()) << ops[i].path;
    if (reading) {
      EXPECT_LT(i, steps[touching == 0 ? 0 : touching - 1]) << ops[i].path;
    } else {
      EXPECT_GT(i, steps[touching]) << ops[i].path;
    }
  }
  EXPECT_EQ(reads, static_cast<int>(2 * steps.size()));
  EXPECT_EQ(writes, reads);
}

// Of a bf16 run of the GPU, whose plan can be asked for.
TEST(Nvme, LowBitsGoToTheFileToo) {
  ScratchRun scratch("nvme-weights");
  RunConfig run =
      scratch.config("tiny-llama.toml", nvme_settings(scratch, {"offload.weights=true", "offload.working_weights=true",
                                                                "offload.activations=block", "mesh.dp=2"}));
  LoweredRun lowered = lower_run(run, resolve_spec(run), cuda_target(Determinism::repeatable), Checks::each_pass);
  int low = 0;
  for (const Value& value : lowered.programs.train[0].values) {
    if (value.kind != ValueKind::low_bits) continue;
    ++low;
    EXPECT_EQ(value.space, MemorySpace::nvme) << value.path;
  }
  EXPECT_GT(low, 0);
}

TEST(Nvme, PlanPricesTheDisks) {
  ScratchRun scratch("nvme-price");
  auto plan_on = [&](Machine machine) {
    RunConfig run = scratch.config("tiny-llama.toml", nvme_settings(scratch));
    LoweredRun lowered = lower_run(run, resolve_spec(run), cuda_target(Determinism::fast));
    SoftwareProfile profile;
    return make_plan({.run = run, .lowered = lowered, .machine = &machine, .profile = &profile});
  };
  Machine machine = load_machine("h200");
  machine.host.nvme_bytes_per_s = 0;
  EXPECT_THROW(plan_on(machine), UserError);
  machine.host.nvme_bytes_per_s = 2e7;
  RunPlan plan = plan_on(machine);
  machine.host.nvme_bytes_per_s = 1e7;
  RunPlan slower = plan_on(machine);
  // The file is read and written once, and next to disks as slow as these nothing else counts.
  const double seconds = 2 * static_cast<double>(plan.classes[0].nvme_bytes) * (1 / 1e7 - 1 / 2e7);
  EXPECT_NEAR(slower.step->seconds - plan.step->seconds, seconds, 0.01 * seconds);
  EXPECT_GT(slower.step->exposed_comm_s.at(std::string(kNvme)), 0);
}

// The files of this process that have no name any more and were made under the directory.
std::vector<int> files_without_name(const std::filesystem::path& directory) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the iterator's own
    std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with(directory.string()) && target.find("sextant-offload") != std::string::npos)
      found.push_back(std::stoi(entry.path().filename().string()));
  }
  return found;
}

// A disk that gives no more bytes ends the step, with the directory's name; the file has the size that was planned.
TEST(Nvme, ADiskThatFailsEndsTheRun) {
  if (auto why = why_no_nvme()) GTEST_SKIP() << *why;
  ScratchRun scratch("nvme-fails");
  RunConfig run = scratch.config("tiny-llama.toml", nvme_settings(scratch));
  ModelSpec spec = resolve_spec(run);
  ThreadTeam team(1);
  Dataset dataset = open_dataset(run, spec, team, [](std::string_view) {});
  LoweredRun lowered = lower_run(run, spec, cpu_target(1));
  std::unique_ptr<Executor> executor = make_cpu_executor(1);
  HostGroup group;
  Trainer trainer({run, lowered.programs, dataset, *executor, group});
  std::vector<int> files = files_without_name(scratch.root());
  ASSERT_EQ(files.size(), 1u);
  struct stat file {};
  ASSERT_EQ(::fstat(files[0], &file), 0);
  EXPECT_EQ(file.st_size, trainer.nvme_arena_bytes());
  EXPECT_EQ(file.st_size, make_plan({.run = run, .lowered = lowered}).classes[0].nvme_bytes);
  trainer.begin_step(1, 0);
  trainer.finish_step();
  ASSERT_EQ(::ftruncate(files[0], kFileBlock), 0);
  try {
    trainer.begin_step(2, run.batch.sequences);
    trainer.finish_step();
    ADD_FAILURE() << "a step without its state";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find(scratch.root().string()), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace sextant
