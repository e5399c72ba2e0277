// Every optimizer against PyTorch's: twenty steps of a small Llama (tests/peers/make_optimizer_fixtures.py), on one
// rank and on meshes, whole and resumed on another mesh; and an optimizer that exists only here.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "checkout.h"
#include "ckpt/safetensors.h"
#include "config/load.h"
#include "ops/ops.h"
#include "optimizer_run.h"
#include "run/programs.h"
#include "scratch_run.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kFixtures = fs::path(checkout::kSources) / "tests/fixtures";
constexpr int64_t kSteps = 20;
constexpr double kTolerance = 1e-5;

std::vector<int32_t> integers(const TensorView& view) {
  std::vector<int32_t> x(static_cast<size_t>(view.shape.count()));
  std::memcpy(x.data(), view.bytes.data(), view.bytes.size());
  return x;
}

std::vector<float> floats(const TensorView& view) {
  std::vector<float> x(static_cast<size_t>(view.shape.count()));
  std::memcpy(x.data(), view.bytes.data(), view.bytes.size());
  return x;
}

// The optimizer as a user writes it: the keys of the fixture's metadata.
RunConfig config_of(const SafetensorsFile& expected) {
  std::vector<std::string> keys{"model.architecture=llama", "model.layers=2", "model.hidden=48", "model.heads=4"};
  for (const auto& [name, text] : expected.metadata()) {
    nlohmann::json settings = nlohmann::json::parse(text);
    for (const auto& [key, value] : settings.items())
      keys.push_back(fmt::format("optimizer.{}={}", key, value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return parse_config("", "command line", keys);
}

OptimizerRun run_of(const SafetensorsFile& expected) {
  SafetensorsFile inputs(kFixtures / "models/llama/expected.safetensors");
  RunConfig config = config_of(expected);
  GlobalShape shape = inputs.tensor("input_ids").shape;
  return {.model = kFixtures / "models/llama",
          .mesh = single_rank_mesh(),
          .optimizer = optimizer_of(config),
          .lr = static_cast<float>(config.optimizer.lr),
          .rows = shape[0],
          .seq = shape[1],
          .tokens = integers(inputs.tensor("input_ids")),
          .targets = integers(inputs.tensor("targets")),
          .last_step = kSteps};
}

struct MeshOf {
  const char* name;
  int dp = 1, cp = 1, tp = 1;
  Parallel parallel = {};

  OptimizerRun applied_to(OptimizerRun run) const {
    run.mesh = Mesh{{{"pp", 1}, {"dp", dp}, {"cp", cp}, {"tp", tp}}};
    run.parallel = parallel;
    return run;
  }
};

// Beside what every optimizer must withstand, tp4: there are fewer key-value heads than ranks, and q and kv are apart.
const MeshOf kMeshes[] = {{"one"},
                          {"dp2_tp2", 2, 1, 2},
                          {"dp2_tp2_zero1", 2, 1, 2, {.zero = 1}},
                          {"dp2_tp2_zero2", 2, 1, 2, {.zero = 2}},
                          {"dp2_tp2_zero3", 2, 1, 2, {.sequence = true, .zero = 3}},
                          {"cp2_tp4", 1, 2, 4, {.zero = 1}}};

void expect_weights(const SafetensorsFile& expected, const fs::path& checkpoint, const std::string& what) {
  SafetensorsFile found(checkpoint / "model.safetensors");
  size_t compared = 0;
  for (const TensorEntry& entry : found.tensors()) {
    std::vector<float> ours = floats(found.tensor(entry.name)), theirs = floats(expected.tensor("param." + entry.name));
    double distance = 0, norm = 0;
    for (size_t i = 0; i < theirs.size(); ++i) {
      distance += std::pow(static_cast<double>(ours[i]) - static_cast<double>(theirs[i]), 2);
      norm += std::pow(static_cast<double>(theirs[i]), 2);
    }
    EXPECT_LE(std::sqrt(distance), kTolerance * std::sqrt(norm)) << what << ": " << entry.name;
    ++compared;
  }
  EXPECT_EQ(compared, expected.tensors().size() - 1) << what;  // all but the losses
}

std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFixtures / "optimizers"))
    names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

class OptimizerParity : public testing::TestWithParam<std::string> {
 protected:
  SafetensorsFile expected_{kFixtures / "optimizers" / (GetParam() + ".safetensors")};
  ScratchRun scratch_{"optimizer-" + GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Torch, OptimizerParity, testing::ValuesIn(fixture_names()),
                         [](const auto& info) { return info.param; });

TEST_P(OptimizerParity, TwentyStepsOnEveryMesh) {
  std::vector<float> losses = floats(expected_.tensor("losses"));
  for (const MeshOf& mesh : kMeshes) {
    fs::path out = scratch_.root() / mesh.name;
    std::vector<double> found = run_and_save(mesh.applied_to(run_of(expected_)), out);
    for (size_t step = 0; step < found.size(); ++step)
      EXPECT_NEAR(found[step], static_cast<double>(losses[step]), 1e-5 * static_cast<double>(losses[0]))
          << mesh.name << " step " << step;
    expect_weights(expected_, out, mesh.name);
  }
}

TEST_P(OptimizerParity, StatesSurviveASaveAndAChangeOfMesh) {
  const MeshOf* chain[] = {&kMeshes[4], &kMeshes[5], &kMeshes[0]};
  fs::path from;
  int64_t step = 0;
  for (const MeshOf* mesh : chain) {
    OptimizerRun run = mesh->applied_to(run_of(expected_));
    run.from = from;
    step += 7;
    run.last_step = std::min(step, kSteps);
    from = scratch_.root() / mesh->name;
    run_and_save(run, from);
  }
  expect_weights(expected_, from, "resumed");
}

TEST(Optimizers, EveryOneIsComparedWithPyTorch) {
  std::set<std::string> compared;
  for (const std::string& name : fixture_names())
    compared.insert(config_of(SafetensorsFile(kFixtures / "optimizers" / (name + ".safetensors"))).optimizer.name);
  for (const OptimizerDef* def : all_optimizers()) EXPECT_TRUE(compared.contains(std::string(def->name))) << def->name;
}

// On a pipeline a tied embedding is held by two ranks, and both must step alike; ZBV defers weight gradients.
TEST(Optimizers, OnPipelinesAsOnOneRank) {
  ScratchRun scratch("optimizer-pipelines");
  for (const OptimizerDef* def : all_optimizers()) {
    std::vector<std::string> settings{fmt::format("optimizer.name={}", def->name),
                                      "optimizer.lr=1e-3",
                                      "optimizer.schedule=constant",
                                      "model.layers=4",
                                      "batch.seq=32",
                                      "train.steps=6",
                                      "train.eval_every=0",
                                      "train.check_replicas_every=1",
                                      "checkpoint.at_end=false"};
    if (def->defaults.eps) settings.push_back("optimizer.eps=1e-4");
    auto losses = [&](const char* name, std::vector<std::string> mesh) {
      std::string out = fmt::format("{}-{}", def->name, name);
      mesh.insert(mesh.end(), settings.begin(), settings.end());
      scratch.run(out, mesh, "tiny-gpt2.toml");
      return scratch.losses(out);
    };
    std::vector<std::string> one = losses("one", {});
    for (const auto& [name, mesh] : std::map<const char*, std::vector<std::string>>{
             {"pp2_zero1", {"mesh.pp=2", "mesh.dp=2", "mesh.zero=1"}},
             {"zbv", {"mesh.pp=2", "pipeline.schedule=zbv", "pipeline.chunks=2", "mesh.tp=2"}}}) {
      std::vector<std::string> found = losses(name, mesh);
      ASSERT_EQ(found.size(), one.size()) << def->name << " " << name;
      for (size_t i = 0; i < one.size(); ++i)
        EXPECT_NEAR(std::stod(found[i]), std::stod(one[i]), 1e-5 * std::stod(one[i])) << def->name << " " << name << i;
    }
  }
}

// Settings that change which states there are, or another optimizer: the checkpoint does not fit.
TEST(Optimizers, StatesOfAnotherAreRefused) {
  ScratchRun scratch("other-optimizer");
  auto run_with = [](const char* name) {
    OptimizerRun run = run_of(SafetensorsFile(kFixtures / "optimizers" / (std::string(name) + ".safetensors")));
    run.last_step = 1;
    return run;
  };
  run_and_save(run_with("adamw"), scratch.root() / "adamw");
  OptimizerRun other = run_with("lion");
  ModelSpec spec = spec_from_hf_config(read_file(other.model / "config.json"), "config.json");
  Program program =
      lower(build_model(spec, {.batch = 2, .seq = 24}, single_rank_mesh()), cpu_target(1), {.train = other.optimizer});
  auto executor = make_cpu_executor(1);
  auto arena = executor->allocate(program.arena_bytes);
  auto bound = executor->bind(program, *arena);
  try {
    load_run_checkpoint(scratch.root() / "adamw", *bound, spec, other.optimizer);
    FAIL() << "a checkpoint of adamw was resumed with lion";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("the states of lion"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("adam_m."), std::string::npos) << error.what();
  }
}

// docs/extend/optimizer.md, followed to the letter: momentum on top of momentum.
const OptimizerDef kTwice{
    .name = "twice",
    .summary = "momentum of momentum",
    .defaults = {.weight_decay = 0.05, .momentum = 0.7},
    .states = [](const OptimizedWeight&, const OptimizerSettings&) -> std::vector<OptimizerState> {
      return {{.name = "twice_first"}, {.name = "twice_second"}};
    },
    .update =
        [](UpdateScope& s) {
          Attrs attrs{{"momentum", *s.settings().momentum}, {"nesterov", 0}};
          ValueId once = s.emit(ops::muon_momentum, {s.gradient(), s.state(0), s.scale()}, attrs)[0];
          ValueId twice = s.emit(ops::muon_momentum, {once, s.state(1), s.scale()}, attrs)[0];
          s.write(ops::muon_step, {s.value(), twice, s.lr(), s.scale()}, {{"weight_decay", s.weight_decay()}});
        },
};

TEST(Optimizers, AMadeUpOneNeedsNoOtherChange) {
  ScratchRun scratch("made-up-optimizer");
  OptimizerRun run = run_of(SafetensorsFile(kFixtures / "optimizers/adamw.safetensors"));
  run.optimizer = {.def = &kTwice, .settings = {}, .clip = 1};
  run.lr = 0.3f;
  run.last_step = 12;
  std::vector<double> whole = run_and_save(run, scratch.root() / "whole");
  EXPECT_LT(whole.back(), 0.9 * whole.front());

  run.last_step = 5;
  run_and_save(run, scratch.root() / "part");
  run = kMeshes[4].applied_to(run);
  run.from = scratch.root() / "part";
  run.last_step = 12;
  std::vector<double> resumed = run_and_save(run, scratch.root() / "resumed");
  ASSERT_EQ(resumed.size(), 7u);
  for (size_t i = 0; i < resumed.size(); ++i) EXPECT_NEAR(resumed[i], whole[i + 5], 1e-5 * whole[i + 5]) << i;
  SafetensorsFile states(scratch.root() / "resumed/optimizer.safetensors");
  EXPECT_TRUE(states.contains("twice_second.layers.0.attn.qkv.weight"));
}

}  // namespace
}  // namespace sextant
