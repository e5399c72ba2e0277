// Whole runs on the GPU: as on the CPU in f32, near it in bf16; on several ranks that share the device; bit for bit
// where that was asked for; checkpoints that move between the devices; a plan that does not fit is refused before
// anything is taken.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "cost/machine_file.h"
#include "exec/cuda/runtime/cuda_executor.h"
#include "plan/machine_target.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "run/run_target.h"
#include "train/mesh_cases.h"
#include "train/scratch_run.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

MakeExecutor cuda_ranks(Determinism determinism = Determinism::fast) {
  return [determinism](const RankContext& context, int) {
    return make_cuda_executor({.determinism = determinism}, context);
  };
}

class OnCuda : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no CUDA device";
  }
  ScratchRun scratch_{"cuda"};

  std::vector<double> run(std::string_view out, const MakeExecutor& executors, std::vector<std::string> settings,
                          std::string_view file = "tiny-llama.toml") {
    train(scratch_.config(file, std::move(settings)), scratch_.root() / out, executors);
    std::vector<double> losses;
    for (const std::string& text : scratch_.losses(out)) losses.push_back(std::stod(text));
    return losses;
  }

  // Of all layers, step by step.
  std::vector<double> numbers_of(std::string_view out, const char* field) const {
    std::vector<double> numbers;
    std::istringstream lines(read_file(scratch_.root() / out / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json metrics = nlohmann::json::parse(line);
      for (double number : metrics.at(field)) numbers.push_back(number);
    }
    EXPECT_FALSE(numbers.empty());
    return numbers;
  }
};

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance * b[i]) << "step " << i + 1;
}

std::vector<std::string> with(std::vector<std::string> settings, std::initializer_list<std::string> more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

TEST_F(OnCuda, TrainsAsTheCpuDoes) {
  for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml", "tiny-moe.toml"}) {
    for (const char* recompute : {"none", "selective", "full"}) {
      std::string name = fmt::format("{}-{}", file, recompute);
      std::vector<std::string> settings = with(common_settings(), {fmt::format("train.recompute={}", recompute)});
      std::vector<double> cpu = run("cpu-" + name, cpu_ranks(), settings, file);
      expect_near(run("f32-" + name, cuda_ranks(), with(settings, {"train.precision=f32"}), file), cpu, 2e-5);
      expect_near(run("bf16-" + name, cuda_ranks(), with(settings, {"train.precision=bf16"}), file), cpu, 1e-2);
    }
  }
}

// Statistics of layers, of which the numbers of a step are brought to the host at once.
TEST_F(OnCuda, MeasuresTensorsAsTheCpuDoes) {
  for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml"}) {
    std::vector<std::string> settings = with(common_settings(), {"log.tensor_stats_every=1"});
    run(fmt::format("cpu-{}", file), cpu_ranks(), settings, file);
    run(fmt::format("f32-{}", file), cuda_ranks(), with(settings, {"train.precision=f32"}), file);
    for (const char* field : {"activation_rms", "activation_max", "activation_gradient_rms", "gradient_rms",
                              "gradient_max", "weight_rms", "weight_max", "update_ratio", "attention_logit_max"}) {
      SCOPED_TRACE(field);
      expect_near(numbers_of(fmt::format("f32-{}", file), field), numbers_of(fmt::format("cpu-{}", file), field), 2e-3);
    }
  }
}

TEST_F(OnCuda, EveryOptimizerStepsAsOnTheCpu) {
  for (const OptimizerDef* def : all_optimizers()) {
    SCOPED_TRACE(def->name);
    std::vector<std::string> settings = with(common_settings(), {fmt::format("optimizer.name={}", def->name)});
    std::erase_if(settings,
                  [&](const std::string& s) { return s.starts_with("optimizer.eps=") && !def->defaults.eps; });
    std::string cpu_out = fmt::format("cpu-{}", def->name);
    std::vector<double> cpu = run(cpu_out, cpu_ranks(), settings);
    // Lion steps by signs: where a gradient's rounding is on the other side of zero, a weight moves the other way.
    double in_f32 = def->name == "lion" ? 5e-4 : 5e-5;
    for (const char* mesh : {"mesh.dp=1", "mesh.tp=2"}) {
      std::vector<std::string> f32 = with(settings, {mesh, "train.precision=f32"});
      expect_near(run(fmt::format("f32-{}-{}", def->name, mesh), cuda_ranks(), f32), cpu, in_f32);
      std::vector<std::string> bf16 = with(settings, {mesh, "train.precision=bf16"});
      expect_near(run(fmt::format("bf16-{}-{}", def->name, mesh), cuda_ranks(), bf16), cpu, 1e-2);
    }
  }
}

TEST_F(OnCuda, SlidingWindowsTrainAsOnTheCpu) {
  std::vector<std::string> settings = with(common_settings(), {"model.qk_norm=true", "model.window=9"});
  std::vector<double> everywhere = run("cpu-full", cpu_ranks(), common_settings());
  std::vector<double> cpu = run("cpu", cpu_ranks(), settings);
  EXPECT_GT(std::abs(cpu.back() - everywhere.back()), 1e-4 * cpu.back()) << "the window hides nothing";
  for (const std::vector<std::string>& mesh :
       {std::vector<std::string>{"mesh.dp=1"}, {"mesh.cp=2"}, {"mesh.cp=2", "mesh.context=ulysses"}, {"mesh.tp=2"}}) {
    std::string name = fmt::format("{}", fmt::join(mesh, "-"));
    SCOPED_TRACE(name);
    std::vector<std::string> all = settings;
    all.insert(all.end(), mesh.begin(), mesh.end());
    expect_near(run("f32-" + name, cuda_ranks(), with(all, {"train.precision=f32"})), cpu, 5e-5);
    expect_near(run("bf16-" + name, cuda_ranks(), with(all, {"train.precision=bf16"})), cpu, 1e-2);
  }
}

// The same elements are left out as on the CPU, in attention by our own kernels.
TEST_F(OnCuda, DropoutTrainsAsOnTheCpu) {
  for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml"}) {
    std::vector<std::string> settings = with(common_settings(), {"model.dropout=0.2", "train.steps=8"});
    std::vector<double> cpu = run(fmt::format("cpu-{}", file), cpu_ranks(), settings, file);
    for (const std::vector<std::string>& mesh : {std::vector<std::string>{"mesh.dp=1"},
                                                 {"mesh.cp=2"},
                                                 {"mesh.cp=2", "mesh.context=ulysses"},
                                                 {"mesh.tp=2", "mesh.sequence_parallel=true"},
                                                 {"mesh.pp=2", "train.recompute=full"}}) {
      std::string name = fmt::format("{}-{}", file, fmt::join(mesh, "-"));
      SCOPED_TRACE(name);
      std::vector<std::string> all = settings;
      all.insert(all.end(), mesh.begin(), mesh.end());
      expect_near(run("f32-" + name, cuda_ranks(), with(all, {"train.precision=f32"}), file), cpu, 5e-5);
      expect_near(run("bf16-" + name, cuda_ranks(), with(all, {"train.precision=bf16"}), file), cpu, 1e-2);
    }
  }
}

TEST_F(OnCuda, RanksThatShareADeviceTrainAsOne) {
  for (const char* file : {"tiny-llama.toml", "tiny-gpt2.toml", "tiny-moe.toml"}) {
    std::vector<std::string> settings = with(common_settings(), {"train.precision=f32"});
    std::vector<double> one = run(fmt::format("one-{}", file), cuda_ranks(), settings, file);
    for (const MeshCase& mesh : meshes()) {
      std::vector<std::string> all = settings;
      all.insert(all.end(), mesh.settings.begin(), mesh.settings.end());
      RunConfig config = scratch_.config(file, all);
      if (config.mesh.dp * config.mesh.tp * config.mesh.pp * config.mesh.cp > 4) continue;
      SCOPED_TRACE(fmt::format("{} {}", file, mesh.name));
      // By rounding, a token between two experts may go to the other one.
      bool has_experts = resolve_spec(config).experts.has_value();
      expect_near(run(fmt::format("{}-{}", mesh.name, file), cuda_ranks(), all, file), one, has_experts ? 2e-4 : 2e-5);
    }
  }
}

TEST_F(OnCuda, RanksInBf16TrainAsOneWithinItsNoise) {
  std::vector<std::string> settings = with(common_settings(), {"train.precision=bf16"});
  std::vector<double> one = run("one", cuda_ranks(), settings);
  for (std::vector<std::string> mesh : {std::vector<std::string>{"mesh.tp=2"},
                                        {"mesh.dp=2", "mesh.zero=1"},
                                        {"mesh.dp=2", "mesh.zero=3"},
                                        {"mesh.pp=2"},
                                        {"mesh.cp=2"}}) {
    std::string name = fmt::format("{}", fmt::join(mesh, "-"));
    SCOPED_TRACE(name);
    std::vector<std::string> all = settings;
    all.insert(all.end(), mesh.begin(), mesh.end());
    expect_near(run(name, cuda_ranks(), all), one, 1e-2);
  }
}

TEST_F(OnCuda, DeterministicRunsRepeatBitForBit) {
  std::vector<std::string> settings = with(common_settings(), {"train.precision=bf16", "train.deterministic=true"});
  std::vector<double> first = run("first", cuda_ranks(Determinism::repeatable), settings);
  EXPECT_EQ(run("second", cuda_ranks(Determinism::repeatable), settings), first);
}

TEST_F(OnCuda, CheckpointsMoveBetweenDevices) {
  std::vector<std::string> settings = common_settings();
  auto ten = with(settings, {"train.steps=10"});
  auto twenty = with(settings, {"train.steps=20"});
  std::vector<double> cpu = run("whole", cpu_ranks(), twenty);
  // Ten steps on one device, ten on the other, in both directions and in both precisions.
  for (const char* precision : {"f32", "bf16"}) {
    SCOPED_TRACE(precision);
    double tolerance = std::string(precision) == "f32" ? 2e-5 : 1e-2;
    std::string there = fmt::format("there-{}", precision), back = fmt::format("back-{}", precision);
    std::string setting = fmt::format("train.precision={}", precision);
    run(there, cpu_ranks(), ten);
    expect_near(run(there, cuda_ranks(), with(twenty, {setting})), cpu, tolerance);
    run(back, cuda_ranks(), with(ten, {setting}));
    expect_near(run(back, cpu_ranks(), twenty), cpu, tolerance);
  }
}

TEST_F(OnCuda, ResumeIsBitIdentical) {
  std::vector<std::string> settings = with(common_settings(), {"train.precision=bf16", "train.deterministic=true"});
  std::vector<double> whole = run("whole", cuda_ranks(Determinism::repeatable), settings);
  run("parts", cuda_ranks(Determinism::repeatable), with(settings, {"train.steps=7"}));
  EXPECT_EQ(run("parts", cuda_ranks(Determinism::repeatable), settings), whole);
}

TEST_F(OnCuda, APlanThatDoesNotFitIsRefusedWithOneThatDoes) {
  size_t free_before = 0, free_after = 0, total = 0;
  cudaMemGetInfo(&free_before, &total);
  RunConfig config = scratch_.config("tiny-llama.toml", {"batch.microbatch=131072", "batch.sequences=131072",
                                                         "batch.seq=256", "model.max_seq=256", "model.layers=24"});
  try {
    train(config, scratch_.root() / "large", cuda_ranks());
    FAIL() << "a plan far beyond the device was not refused";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("would fit: "), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("microbatch="), std::string::npos) << error.what();
  }
  cudaMemGetInfo(&free_after, &total);
  EXPECT_LT(free_before, free_after + (size_t{1} << 30));
}

// The bytes that `plan --machine` states without a GPU are those that every rank allocates on one.
TEST_F(OnCuda, AllocatesWhatIsPlannedForAMachine) {
  Machine machine = load_machine("h200");
  SoftwareProfile own = own_profile();
  std::vector<std::vector<std::string>> cases{{},
                                              {"train.deterministic=true"},
                                              {"train.precision=f32", "train.recompute=full"},
                                              {"mesh.dp=2", "mesh.zero=1"},
                                              {"mesh.dp=2", "mesh.zero=2"},
                                              {"mesh.dp=2", "mesh.zero=3"},
                                              {"mesh.tp=2", "mesh.pp=2"}};
  if (make_cuda_executor({})->target().fp8)
    for (const char* recipe : {"train.precision=fp8", "train.precision=fp8-block"}) cases.push_back({recipe});
  for (size_t i = 0; i < cases.size(); ++i) {
    RunConfig run = scratch_.config("tiny-llama.toml", with(cases[i], {"train.steps=2"}));
    ModelSpec spec = resolve_spec(run);
    int ranks = run_shape(run, spec).mesh.world_size();
    Target target = machine_target({.run = run, .ranks = ranks, .machine = machine, .profile = own});
    LoweredRun planned = lower_run(run, spec, target);
    fs::path out = scratch_.root() / fmt::format("planned-{}", i);
    train(run, out, cuda_ranks(determinism_of(run)));
    std::string line = read_file(out / "metrics.jsonl");
    std::vector<int64_t> bytes;
    for (int rank = 0; rank < ranks; ++rank)
      bytes.push_back(planned.programs.arena_bytes(stage_rank_of(planned.shape.mesh, rank)));
    std::string wanted = fmt::format("\"arena_bytes_by_rank\":[{}]", fmt::join(bytes, ","));
    EXPECT_NE(line.find(wanted), std::string::npos)
        << fmt::format("{}", fmt::join(cases[i], " ")) << ": not " << wanted;
  }
}

}  // namespace
}  // namespace sextant
