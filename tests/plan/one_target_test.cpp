// Planning for a machine and training on it lower for one target: the same Programs to the byte, known without a GPU.
#include <gtest/gtest.h>

#include <filesystem>

#include "checkout.h"
#include "config/load.h"
#include "cost/machine_file.h"
#include "cost/planned_target.h"
#include "exec/cpu/cpu_executor.h"
#include "ir/print.h"
#include "plan/machine_target.h"
#include "plan/run_plan.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "run/run_target.h"
#include "train/mesh_cases.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kConfigs = fs::path(checkout::kSources) / "configs";

using Settings = std::vector<std::string>;

struct Planned {
  RunConfig run;
  ModelSpec spec;
  int ranks;

  Planned(const fs::path& config, const Settings& settings)
      : run(load_config(config, settings)), spec(resolve_spec(run)), ranks(run_shape(run, spec).mesh.world_size()) {}
};

std::string text_of(const RunPrograms& programs) {
  std::string text;
  for (const std::vector<Program>* all : {&programs.train, &programs.evaluate})
    for (const Program& program : *all) text += print(program);
  return text;
}

void expect_equal(const RunPrograms& planned, const RunPrograms& trained) {
  for (size_t i = 0; i < planned.train.size(); ++i)
    EXPECT_EQ(planned.arena_bytes(static_cast<int>(i)), trained.arena_bytes(static_cast<int>(i))) << "stage " << i;
  EXPECT_TRUE(text_of(planned) == text_of(trained)) << "the Programs differ";
}

void expect_one_lowering_on_gpus(const fs::path& config, const Settings& settings) {
  SCOPED_TRACE(fmt::format("{} {}", config.string(), fmt::join(settings, " ")));
  static const Machine h200 = load_machine("h200");
  Planned p(config, settings);
  SoftwareProfile own = own_profile();
  Target target = machine_target({.run = p.run, .ranks = p.ranks, .machine = h200, .profile = own});
  RunPrograms planned = lower_run(p.run, p.spec, target, Checks::none).programs;
  // As train does (train.cpp): the shape, then the executor's target.
  Target executor = cuda_target(p.run.train.deterministic ? Determinism::repeatable : Determinism::fast);
  expect_equal(planned, build_programs(p.run, run_shape(p.run, p.spec), executor, {}, Checks::none));
}

TEST(OneTarget, EveryConfigIsPlannedAsItIsTrainedOnAGpu) {
  int configs = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kConfigs)) {
    if (entry.path().extension() != ".toml") continue;
    ++configs;
    // Of DeepSeek-V3, which takes as long as all others together, fewer stages, filled as they are in the whole.
    const bool is_largest = entry.path().filename() == "deepseek-v3.toml";
    expect_one_lowering_on_gpus(entry.path(), is_largest ? Settings{"mesh.pp=4", "model.layers=16"} : Settings{});
  }
  EXPECT_GE(configs, 10);
}

TEST(OneTarget, EveryWayToRecomputeIsPlannedAsItIsTrainedOnAGpu) {
  for (const char* config : {"tiny-llama.toml", "tiny-gpt2.toml", "bench/gpt2-124m.toml", "bench/llama-1b.toml"}) {
    for (const char* mode : {"none", "norms", "selective", "alternate", "full"})
      expect_one_lowering_on_gpus(kConfigs / config, {fmt::format("train.recompute={}", mode)});
    expect_one_lowering_on_gpus(kConfigs / config, {"train.deterministic=true"});
  }
}

TEST(OneTarget, MeshesArePlannedAsTheyAreTrainedOnAGpu) {
  for (const char* config : {"tiny-llama.toml", "tiny-gpt2.toml"})
    for (const MeshCase& mesh : meshes()) {
      Settings settings = common_settings();
      settings.insert(settings.end(), mesh.settings.begin(), mesh.settings.end());
      expect_one_lowering_on_gpus(kConfigs / config, settings);
    }
}

// All counted bytes are planned: a target that knows fewer needs plans fewer bytes.
TEST(OneTarget, OurOwnKernelsNeedMoreThanOthersAreKnownToNeed) {
  Planned p(kConfigs / "bench" / "gpt2-124m.toml", {});
  SoftwareProfile other = own_profile();
  other.kernels = Kernels::theirs;
  auto bytes = [&](const SoftwareProfile& profile) {
    return lower_run(p.run, p.spec, planned_target(profile), Checks::none).programs.arena_bytes(0);
  };
  EXPECT_GT(bytes(own_profile()), bytes(other));
}

TEST(OneTarget, RepeatableRunsArePlannedWithTheirMatrix) {
  Settings longer{"model.max_seq=8192", "batch.seq=8192", "batch.sequences=1", "batch.microbatch=1"};
  Planned fast(kConfigs / "bench" / "gpt2-124m.toml", longer);
  longer.push_back("train.deterministic=true");
  Planned repeatable(kConfigs / "bench" / "gpt2-124m.toml", longer);
  auto bytes = [](const Planned& p) {
    return lower_run(p.run, p.spec, cuda_target_of(p.run), Checks::none).programs.arena_bytes(0);
  };
  EXPECT_GT(bytes(repeatable), bytes(fast));
}

// A processor of 8 cores, measured as 4 ranks of 2 threads: ranks that share it have their part of all cores, or of
// train.threads.
TEST(OneTarget, RanksOnACpuArePlannedWithTheThreadsTheyHave) {
  Machine machine;
  machine.device.kind = DeviceKind::cpu;
  machine.device.units = 2;
  machine.devices_per_node = 4;
  SoftwareProfile own = own_profile();
  struct Case {
    Settings settings;
    int threads;
  };
  for (const Case& c : {Case{{}, 8}, Case{{"mesh.dp=2"}, 4}, Case{{"mesh.tp=2", "train.threads=2"}, 1},
                        Case{{"mesh.pp=2", "train.threads=6"}, 3}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(c.settings, " ")));
    Planned p(kConfigs / "tiny-llama.toml", c.settings);
    Target target = machine_target({.run = p.run, .ranks = p.ranks, .machine = machine, .profile = own});
    RunPrograms planned = lower_run(p.run, p.spec, target, Checks::none).programs;
    Target executor = make_cpu_executor(c.threads)->target();
    expect_equal(planned, build_programs(p.run, run_shape(p.run, p.spec), executor, {}, Checks::none));
  }
}

}  // namespace
}  // namespace sextant
