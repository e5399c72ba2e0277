// checkpoint.dtype: what is in the model's files, and that a run resumes from what they do not hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ckpt/convert.h"
#include "ckpt/model_directory.h"
#include "ckpt/safetensors_writer.h"
#include "ckpt/weights_reader.h"
#include "scratch_run.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

std::string torch_dtype_of(const fs::path& directory) {
  return nlohmann::json::parse(read_file(directory / "config.json")).at("torch_dtype");
}

// Every tensor of the model is the master weight, rounded.
void expect_rounded(const fs::path& directory, FileDType dtype) {
  WeightsReader model(directory), master(directory / kMasterWeightsFile);
  EXPECT_EQ(model.names(), master.names());
  for (const std::string& name : model.names()) {
    TensorView full = master.tensor(name), half = model.tensor(name);
    EXPECT_EQ(full.dtype, FileDType::f32);
    EXPECT_EQ(half.dtype, dtype);
    std::vector<float> values(static_cast<size_t>(full.shape.count()));
    load_rows(full, {0, row_count(full.shape)}, Transpose::no, values);
    std::vector<std::byte> rounded(values.size() * 2);
    store_rows({values, 1}, {0, static_cast<int64_t>(values.size())}, Transpose::no, dtype, rounded);
    EXPECT_TRUE(std::ranges::equal(rounded, half.bytes)) << name;
  }
}

TEST(CheckpointDType, ARunGoesOnFromItsFullPrecision) {
  ScratchRun scratch("dtype");
  fs::path plain = scratch.run("f32", {"train.steps=4"}).checkpoint;
  EXPECT_EQ(torch_dtype_of(plain), "float32");
  EXPECT_FALSE(fs::exists(plain / kMasterWeightsFile));
  for (const auto& [name, torch, dtype] :
       {std::tuple{"bf16", "bfloat16", FileDType::bf16}, {"f16", "float16", FileDType::f16}}) {
    std::string key = fmt::format("checkpoint.dtype={}", name);
    // The schedule of four steps, stopped after two by another number of steps.
    std::vector<std::string> settings{"optimizer.schedule=constant", key};
    auto steps = [&](int n) {
      std::vector<std::string> all = settings;
      all.push_back(fmt::format("train.steps={}", n));
      return all;
    };
    fs::path half = scratch.run(name, steps(2)).checkpoint;
    EXPECT_EQ(torch_dtype_of(half), torch);
    expect_rounded(half, dtype);
    require_whole_weights(half);
    fs::path resumed = scratch.run(name, steps(4)).checkpoint;
    settings.back() = "checkpoint.dtype=f32";
    fs::path whole = scratch.run(fmt::format("{}-whole", name), steps(4)).checkpoint;
    EXPECT_EQ(read_file(resumed / "optimizer.safetensors"), read_file(whole / "optimizer.safetensors"));
    WeightsReader ours(resumed / kMasterWeightsFile), theirs(whole);
    for (const std::string& tensor : theirs.names())
      EXPECT_TRUE(std::ranges::equal(ours.tensor(tensor).bytes, theirs.tensor(tensor).bytes)) << tensor;
  }
}

TEST(CheckpointDType, RanksRoundTheirParts) {
  ScratchRun scratch("dtype-mesh");
  for (const char* mesh : {"mesh.tp=2", "mesh.dp=2", "mesh.pp=2"}) {
    std::vector<std::string> settings{"train.steps=1",     "optimizer.warmup=0", "checkpoint.dtype=bf16",
                                      "batch.sequences=4", "batch.microbatch=1", mesh};
    if (mesh == std::string("mesh.dp=2")) settings.push_back("mesh.zero=3");
    fs::path saved = scratch.run(mesh, settings).checkpoint;
    EXPECT_EQ(torch_dtype_of(saved), "bfloat16");
    expect_rounded(saved, FileDType::bf16);
  }
}

TEST(CheckpointDType, AWeightThatDoesNotFitIsNamedAndTheCheckpointIsInF32) {
  ScratchRun scratch("dtype-overflow");
  fs::path source = scratch.run("source", {"train.steps=1", "optimizer.warmup=0"}).checkpoint;
  fs::remove(source / "manifest.json");
  SafetensorsFile file(source / "model.safetensors");
  fs::path changed = scratch.root() / "changed.safetensors";
  std::vector<TensorSpec> specs;
  for (const TensorEntry& entry : file.tensors()) specs.push_back({entry.name, entry.dtype, entry.shape});
  SafetensorsWriter writer(changed, plan_safetensors(specs, file.metadata()));
  for (const TensorEntry& entry : file.tensors()) {
    std::span<const std::byte> bytes = file.tensor(entry.name).bytes;
    std::vector<std::byte> copy(bytes.begin(), bytes.end());
    float big = 70000;
    if (entry.name == "model.norm.weight") std::memcpy(copy.data(), &big, sizeof big);
    writer.write(entry.name, copy);
  }
  writer.finish();
  fs::rename(changed, source / "model.safetensors");
  RunConfig run = load_config(
      "", std::vector<std::string>{fmt::format("model.from={}", source.string()), "data.train=stories",
                                   "data.stories_bytes=60000", "batch.seq=64", "train.steps=1", "optimizer.lr=1e-6",
                                   "train.threads=2", "train.eval_every=0", "checkpoint.dtype=f16",
                                   fmt::format("data.cache={}", (scratch.root() / "cache").string())});
  testing::internal::CaptureStdout();
  fs::path saved = train(run, scratch.root() / "out", cpu_ranks()).checkpoint;
  std::string said = testing::internal::GetCapturedStdout();
  EXPECT_NE(said.find("step 1: the checkpoint is in f32, not f16: model.norm.weight holds 7"), std::string::npos)
      << said;
  EXPECT_EQ(torch_dtype_of(saved), "float32");
  EXPECT_FALSE(fs::exists(saved / kMasterWeightsFile));
}

}  // namespace
}  // namespace sextant
