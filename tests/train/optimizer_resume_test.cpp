// Checkpoints of every optimizer on meshes with a pipeline: each stage keeps the states of its own weights and no
// others, the file has the tensors that one rank would write, and a resumed run goes on with the same bits.
#include <gtest/gtest.h>

#include <iterator>
#include <map>

#include "base/rng.h"
#include "ckpt/safetensors.h"
#include "optim/optimizer.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

using Settings = std::vector<std::string>;

constexpr const char* kModelWithExperts = "tiny-moe.toml";

Settings with_more(Settings a, const Settings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Settings resume_settings(std::string_view optimizer) {
  return {fmt::format("optimizer.name={}", optimizer),
          "optimizer.schedule=constant",
          "optimizer.lr=1e-3",
          "model.layers=4",
          "model.hidden=32",
          "model.ffn=48",
          "batch.sequences=8",
          "batch.microbatch=1",
          "batch.seq=16",
          "train.steps=4",
          "train.eval_every=0",
          "train.check_replicas_every=1",
          "train.timeout_s=60",
          "checkpoint.every=2",
          "checkpoint.keep=0"};
}

// Two stages beside a second axis; where the draw has a choice, it decides. Of all four for Adafactor, whose statistics
// are whole on every rank, of two for the others.
class DrawnMeshes {
 public:
  explicit DrawnMeshes(const OptimizerDef& optimizer)
      : random_(33, optimizer.name), count_(&optimizer == &optimizers::adafactor ? 4 : 2) {}

  std::map<std::string, Settings> draw() {
    std::map<std::string, Settings> meshes;
    meshes["dp2"] = with_schedule({"mesh.dp=2", fmt::format("mesh.zero={}", below(4))});
    meshes["cp2"] = with_schedule({"mesh.cp=2", fmt::format("mesh.zero={}", below(4))});
    meshes["dp2_ep2"] = with_schedule({"mesh.dp=2", "mesh.ep=2", fmt::format("mesh.zero={}", below(2))});
    meshes["tp2"] = with_schedule({"mesh.tp=2", below(2) == 0 ? "mesh.etp=1" : "mesh.sequence_parallel=true"});
    while (meshes.size() > count_) meshes.erase(std::next(meshes.begin(), static_cast<int64_t>(below(meshes.size()))));
    return meshes;
  }

 private:
  uint64_t below(uint64_t n) { return random_.below(next_++, n); }

  Settings with_schedule(Settings mesh) {
    static const std::vector<Settings> kStageOrders{{"pipeline.schedule=1f1b"},
                                                    {"pipeline.schedule=interleaved", "pipeline.chunks=2"},
                                                    {"pipeline.schedule=zbv", "pipeline.chunks=2"},
                                                    {"pipeline.schedule=dualpipev", "pipeline.chunks=2"}};
    mesh.push_back("mesh.pp=2");
    return with_more(std::move(mesh), kStageOrders[below(kStageOrders.size())]);
  }

  Random random_;
  size_t count_;
  uint64_t next_ = 0;
};

std::map<std::string, std::string> tensors_of(const fs::path& checkpoint) {
  std::map<std::string, std::string> tensors;
  SafetensorsFile file(checkpoint / "optimizer.safetensors");
  for (const TensorEntry& entry : file.tensors())
    tensors.emplace(entry.name, fmt::format("{} {}", name_of(entry.dtype), entry.shape.text()));
  return tensors;
}

class OptimizerResume : public testing::TestWithParam<const OptimizerDef*> {};

INSTANTIATE_TEST_SUITE_P(All, OptimizerResume, testing::ValuesIn(all_optimizers().begin(), all_optimizers().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(OptimizerResume, OnDrawnMeshesIsBitForBit) {
  const std::string name(GetParam()->name);
  ScratchRun scratch("optimizer-resume-" + name);
  scratch.run("one", resume_settings(name), kModelWithExperts);
  for (const auto& [mesh, settings] : DrawnMeshes(*GetParam()).draw()) {
    SCOPED_TRACE(fmt::format("{} {}", mesh, fmt::join(settings, " ")));
    Settings all = with_more(resume_settings(name), settings);
    scratch.run(mesh, all, kModelWithExperts);
    EXPECT_EQ(tensors_of(scratch.root() / mesh / "step-000004"), tensors_of(scratch.root() / "one/step-000004"));

    std::string again = mesh + "-again";
    all.push_back("checkpoint.resume=" + (scratch.root() / mesh / "step-000002").string());
    scratch.run(again, all, kModelWithExperts);
    std::vector<std::string> losses = scratch.losses(mesh);
    ASSERT_EQ(losses.size(), 4U);
    EXPECT_EQ(scratch.losses(again), std::vector<std::string>(losses.begin() + 2, losses.end()));
    for (const char* file : {"optimizer.safetensors", "model.safetensors"})
      EXPECT_TRUE(read_file(scratch.root() / mesh / "step-000004" / file) ==
                  read_file(scratch.root() / again / "step-000004" / file))
          << file;
  }
}

// Memory and updates of a stage are those of its own weights.
TEST_P(OptimizerResume, AStageKeepsTheStatesOfItsOwnWeights) {
  const std::string name(GetParam()->name);
  ScratchRun scratch("optimizer-stages-" + name);
  for (const auto& [mesh, settings] : DrawnMeshes(*GetParam()).draw()) {
    SCOPED_TRACE(fmt::format("{} {}", mesh, fmt::join(settings, " ")));
    RunConfig run = scratch.config(kModelWithExperts, with_more(resume_settings(name), settings));
    std::vector<Program> stages = lower_run(run, resolve_spec(run), cpu_target(1)).programs.train;
    ASSERT_EQ(stages.size(), 2U);
    for (const Program& program : stages)
      for (const Value& value : program.values)
        if (value.kind == ValueKind::state) {
          ASSERT_NE(value.of, kNoValue) << value.path << " on stage " << program.stage_rank;
          EXPECT_EQ(program[value.of].kind, ValueKind::parameter) << value.path;
        }
  }
}

}  // namespace
}  // namespace sextant
