// Optimizer states in fewer bits and weights without low bits: near training in f32, the same on every mesh, resumed
// exactly, converted where a run goes on in another way, and planned to the byte.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "base/bf16.h"
#include "base/units.h"
#include "ckpt/safetensors.h"
#include "ops/ops.h"
#include "passes/memory.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"
#include "train/save/snapshot.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

using StateSettings = std::vector<std::string>;

const std::map<std::string, StateSettings> kNarrow{
    {"bf16", {"optimizer.state=bf16"}},
    {"int8", {"optimizer.state=int8"}},
    {"rounded", {"train.master_weights=bf16"}},
    {"int8_rounded", {"optimizer.state=int8", "train.master_weights=bf16"}},
    {"bf16_rounded", {"optimizer.state=bf16", "train.master_weights=bf16"}},
};

// Of the model's matrices attention's output is too small for narrow states; the rows of the MLP's down projection are
// two blocks long, so that two ranks have whole ones.
StateSettings state_settings(StateSettings more) {
  StateSettings all{"model.hidden=48",    "model.ffn=512",          "batch.seq=32",
                    "optimizer.eps=1e-6", "optimizer.lr=1e-3",      "optimizer.schedule=constant",
                    "train.steps=6",      "train.eval_every=0",     "train.check_replicas_every=1",
                    "batch.microbatch=1", "checkpoint.at_end=false"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

StateSettings state_settings_with(StateSettings a, const StateSettings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<double> loss_numbers(const std::vector<std::string>& texts) {
  std::vector<double> all;
  for (const std::string& text : texts) all.push_back(std::stod(text));
  return all;
}

TEST(OptimizerState, IsTheSameOnEveryMesh) {
  ScratchRun scratch("state-meshes");
  const std::map<std::string, StateSettings> meshes{
      {"dp2", {"mesh.dp=2"}},
      {"zero1", {"mesh.dp=2", "mesh.zero=1"}},
      {"zero2", {"mesh.dp=2", "mesh.zero=2"}},
      {"zero3", {"mesh.dp=2", "mesh.zero=3"}},
      {"tp2_zero1", {"mesh.tp=2", "mesh.dp=2", "mesh.zero=1"}},
      {"tp4", {"mesh.tp=4", "model.ffn=512"}},  // q and kv apart, and blocks cut
      {"pp2", {"mesh.pp=2"}},
  };
  for (const char* kind : {"bf16_rounded", "int8_rounded"}) {
    scratch.run(kind, state_settings(kNarrow.at(kind)));
    std::vector<double> one = loss_numbers(scratch.losses(kind));
    ASSERT_EQ(one.size(), 6u);
    std::map<std::string, std::vector<std::string>> all;
    for (const auto& [name, mesh] : meshes) {
      std::string out = fmt::format("{}-{}", kind, name);
      scratch.run(out, state_settings(state_settings_with(mesh, kNarrow.at(kind))));
      std::vector<std::string> texts = scratch.losses(out);
      std::vector<double> found = loss_numbers(texts);
      ASSERT_EQ(found.size(), one.size()) << out;
      // Gradients are added up in another order, so some elements are rounded to the other neighbour.
      for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(found[i], one[i], 2e-5 * one[i]) << out << " step " << i + 1;
      all.emplace(name, texts);
    }
    // Where gradients are added up in the same order, who keeps the states does not show.
    EXPECT_EQ(all.at("zero1"), all.at("dp2")) << kind;
    EXPECT_EQ(all.at("zero3"), all.at("zero2")) << kind;
  }
}

// A mesh that cuts blocks keeps the means of those weights in f32: what 8 bits would have done to them is the
// difference to one rank, and it does not build up over changes of mesh (docs/precision.md). f32 states show that it is
// no more.
TEST(OptimizerState, DriftsWithinABoundWhereTheMeshCutsBlocks) {
  ScratchRun scratch("state-drift");
  const std::map<std::string, StateSettings> meshes{
      {"tp2_zero1", {"mesh.tp=2", "mesh.dp=2", "mesh.zero=1"}},
      {"tp2_pp2", {"mesh.tp=2", "mesh.pp=2"}},
      {"tp4", {"mesh.tp=4"}},
  };
  auto drift = [&](const std::string& out, const std::vector<double>& expected) {
    std::vector<double> found = loss_numbers(scratch.losses(out));
    EXPECT_FALSE(found.empty()) << out;
    double largest = 0;
    for (size_t i = 0, first = expected.size() - found.size(); i < found.size(); ++i)
      largest = std::max(largest, std::abs(found[i] / expected[first + i] - 1));
    return largest;
  };
  for (const auto& [kind, bound] : std::map<std::string, double>{{"int8", 5e-4}, {"f32", 2e-5}}) {
    auto run = [&, kind = kind](const std::string& name, const StateSettings& more) {
      std::string out = kind + "-" + name;
      scratch.run(out, state_settings_with(state_settings({"optimizer.state=" + kind, "model.hidden=64",
                                                           "model.ffn=384", "batch.sequences=4", "train.steps=9",
                                                           "checkpoint.every=3", "checkpoint.keep=0"}),
                                           more));
      return out;
    };
    auto from = [&](const std::string& out, int step) {
      return "checkpoint.resume=" + (scratch.root() / out / fmt::format("step-{:06}", step)).string();
    };
    const std::string one = run("one", {});
    const std::vector<double> expected = loss_numbers(scratch.losses(one));
    ASSERT_EQ(expected.size(), 9u);
    for (const auto& [name, mesh] : meshes) {
      std::string whole = run(name, mesh), away = run(name + "-away", state_settings_with(mesh, {from(one, 3)})),
                  back = run(name + "-back", {from(away, 6)});
      for (const std::string& out : {whole, away, back}) EXPECT_LE(drift(out, expected), bound) << out;
    }
  }
}

TEST(OptimizerState, ResumesWithTheSameBits) {
  ScratchRun scratch("state-resume");
  for (const std::string kind : {"bf16_rounded", "int8_rounded"}) {
    StateSettings all =
        state_settings(state_settings_with(kNarrow.at(kind), {"mesh.dp=2", "mesh.zero=1", "checkpoint.every=3"}));
    scratch.run(kind, all);
    std::vector<std::string> whole = scratch.losses(kind);
    fs::path first = scratch.root() / kind / "step-000003";
    ASSERT_TRUE(fs::exists(first)) << first;
    std::string again = kind + "-again";
    all.push_back("checkpoint.resume=" + first.string());
    scratch.run(again, all);
    EXPECT_EQ(scratch.losses(again), std::vector<std::string>(whole.begin() + 3, whole.end())) << kind;
  }
}

// Dtypes of the states in a checkpoint; runs that keep states in another dtype resume from it.
TEST(OptimizerState, IsConvertedFromEachToEach) {
  ScratchRun scratch("state-convert");
  StateSettings three = state_settings({"train.steps=3", "checkpoint.at_end=true"});
  const std::map<std::string, FileDType> kinds{
      {"f32", FileDType::f32}, {"bf16", FileDType::bf16}, {"int8", FileDType::u8}};
  for (const auto& [from, dtype] : kinds) {
    scratch.run(from, state_settings_with(three, {"optimizer.state=" + from}));
    fs::path checkpoint = scratch.root() / from / "step-000003";
    SafetensorsFile file(checkpoint / "optimizer.safetensors");
    EXPECT_EQ(file.tensor("adam_v.layers.0.mlp.down.weight").dtype, dtype) << from;
    EXPECT_EQ(file.tensor("adam_m.norm.weight").dtype, FileDType::f32) << from;
    std::vector<double> alike;
    for (const auto& [to, ignored] : kinds) {
      std::string out = from + "-" + to;
      scratch.run(out, state_settings({"optimizer.state=" + to, "checkpoint.resume=" + checkpoint.string()}));
      std::vector<double> found = loss_numbers(scratch.losses(out));
      ASSERT_EQ(found.size(), 3u) << out;
      if (alike.empty()) alike = found;
      for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], alike[i], 1e-3 * alike[i]) << out;
    }
  }
}

// 200 steps end where training in f32 does, by the mean of the last 20 losses.
TEST(OptimizerState, TrainsAsWellAsF32) {
  ScratchRun scratch("state-200");
  StateSettings settings =
      state_settings({"train.steps=200", "batch.sequences=4", "batch.microbatch=4", "model.layers=1", "model.ffn=128",
                      "train.check_replicas_every=0", "optimizer.eps=1e-8"});
  auto end_of = [&](const std::string& out, const StateSettings& more) {
    scratch.run(out, state_settings_with(settings, more));
    std::vector<double> losses = loss_numbers(scratch.losses(out));
    EXPECT_EQ(losses.size(), 200u);
    return std::accumulate(losses.end() - 20, losses.end(), 0.0) / 20;
  };
  double f32 = end_of("f32", {});
  for (const char* kind : {"bf16_rounded", "int8_rounded"}) {
    double found = end_of(kind, kNarrow.at(kind));
    EXPECT_NEAR(found, f32, 0.005 * f32) << kind;
    EXPECT_NE(found, f32) << kind << " changes nothing";
  }
}

Program lowered_states(const StateSettings& settings, DType dtype = DType::f32) {
  ScratchRun scratch("state-bytes");
  RunConfig run = scratch.config("tiny-llama.toml", settings);
  RunShape shape = run_shape(run, resolve_spec(run));
  Graph graph =
      build_model(shape.spec, {.batch = 1, .seq = 32, .dtype = dtype, .parallel = shape.parallel}, shape.mesh);
  return lower(std::move(graph), cpu_target(1), {.train = optimizer_of(run)});
}

int64_t kept_bytes(int64_t bytes) {
  return round_up(bytes, int64_t{64});
}

TEST(OptimizerState, IsPlannedToTheByte) {
  for (const std::string kind : {"f32", "bf16", "int8"}) {
    Program program = lowered_states(state_settings({"optimizer.state=" + kind}));
    int64_t expected = 0;
    for (const Value& value : program.values) {
      if (value.kind != ValueKind::parameter) continue;
      int64_t n = value.shape.count();
      bool narrow = n >= 4096 && kind != "f32";
      if (narrow && kind == "int8" && value.shape.rank() == 2)
        expected += 2 * kept_bytes(n) + 2 * kept_bytes(4 * value.shape[0] * ((value.shape[1] + 255) / 256));
      else
        expected += 2 * kept_bytes((narrow && kind == "bf16" ? 2 : 4) * n);
    }
    EXPECT_EQ(memory_use(program).optimizer.n, expected) << kind;
  }
}

TEST(OptimizerState, StaysF32WhereTheMeshCutsBlocks) {
  Program program = lowered_states(state_settings({"optimizer.state=int8", "mesh.tp=2", "model.hidden=64"}));
  int cut = 0, whole = 0;
  for (const Region& region : program.regions)
    for (const Op& op : region.ops) {
      cut += op.attrs.has("kept_wide");
      whole += op.def->name == "adamw_int8";
      // Attention's output is split along its rows of 64; the MLP's into blocks of 256.
      EXPECT_TRUE(!op.attrs.has("kept_wide") || op.path.find("attn.out") != std::string::npos) << op.path;
    }
  EXPECT_EQ(cut, 2);  // layers
  EXPECT_GT(whole, 4);
}

// Weights of 16 bits: rounded ones have no low halves; a copy for saving in the background has all bits of the others.
TEST(OptimizerState, RoundedWeightsHaveNoLowBits) {
  auto low_bits = [](const Program& program) {
    int64_t bytes = 0;
    for (const Value& value : program.values)
      if (value.kind == ValueKind::low_bits) bytes += value.local_bytes().n;
    return bytes;
  };
  Program halves = lowered_states(state_settings({}), DType::bf16),
          rounded = lowered_states(state_settings({"train.master_weights=bf16"}), DType::bf16);
  int64_t parameters = 0;
  for (const Value& value : halves.values)
    if (value.kind == ValueKind::parameter) parameters += value.local.count();
  EXPECT_EQ(low_bits(rounded), 0);
  EXPECT_EQ(low_bits(halves), 2 * parameters);
  EXPECT_EQ(snapshot_bytes(halves), 12 * parameters);
  EXPECT_EQ(snapshot_bytes(rounded), 10 * parameters);
}

TEST(OptimizerState, RoundedWeightsAreBf16Numbers) {
  ScratchRun scratch("state-rounded");
  scratch.run("rounded", state_settings({"train.master_weights=bf16", "train.steps=2", "checkpoint.at_end=true"}));
  SafetensorsFile file(scratch.root() / "rounded/step-000002/model.safetensors");
  for (const TensorEntry& entry : file.tensors()) {
    TensorView view = file.tensor(entry.name);
    for (size_t at = 0; at < view.bytes.size(); at += sizeof(float)) {
      float x;
      std::memcpy(&x, view.bytes.data() + at, sizeof x);
      ASSERT_EQ(x, bf16_value(bf16_bits(x))) << entry.name;
    }
  }
}

}  // namespace
}  // namespace sextant
