// train.reproducible = "mesh": losses, gradient norms, weights and optimizer states are the same bits on every
// data-parallel, ZeRO and pipeline layout, and on all of them in turn.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "mesh_cases.h"
#include "scratch_run.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;
using Settings = std::vector<std::string>;

// Twelve microbatches: five ranks get three each, the last of some of them empty.
Settings reproducible(const Settings& more) {
  Settings settings{"train.reproducible=mesh",
                    "model.layers=4",
                    "model.hidden=32",
                    "model.ffn=88",
                    "batch.sequences=12",
                    "batch.microbatch=1",
                    "batch.seq=24",
                    "train.steps=4",
                    "train.eval_every=2",
                    "train.eval_sequences=5",
                    "train.timeout_s=60",
                    "train.check_replicas_every=1",
                    "checkpoint.every=4",
                    "optimizer.schedule=constant",
                    "optimizer.warmup=0",
                    "optimizer.z_loss=1e-4",
                    "optimizer.lr=1e-3"};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

const Settings kNumbers{"loss", "grad_norm", "validation_loss"};

// The files of a checkpoint that hold weights and optimizer states, by name; those that describe the run say how it was
// run.
std::vector<fs::path> tensor_files(const fs::path& checkpoint) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(checkpoint))
    if (entry.path().extension() == ".safetensors") files.push_back(fs::relative(entry.path(), checkpoint));
  std::sort(files.begin(), files.end());
  return files;
}

void expect_same_bits(const fs::path& a, const fs::path& b) {
  std::vector<fs::path> files = tensor_files(a);
  ASSERT_GE(files.size(), 2u) << "weights and states";
  ASSERT_EQ(files, tensor_files(b));
  for (const fs::path& file : files) EXPECT_TRUE(read_file(a / file) == read_file(b / file)) << file;
}

class SameBits : public testing::TestWithParam<const char*> {
 protected:
  static ScratchRun& scratch() {
    static ScratchRun run("reproducible");
    return run;
  }
  static std::string file() { return GetParam(); }
  static std::string run(const std::string& name, const Settings& settings) {
    std::string out = file() + "-" + name;
    scratch().run(out, reproducible(settings), file());
    return out;
  }
  static const std::string& alone() {
    static std::map<std::string, std::string> done;
    auto at = done.find(file());
    return at != done.end() ? at->second : done.emplace(file(), run("alone", {})).first->second;
  }
  static void expect_as_alone(const std::string& out, const Settings& numbers = kNumbers) {
    const std::string last = "step-000004";
    for (const std::string& number : numbers)
      EXPECT_EQ(scratch().metric(out, number), scratch().metric(alone(), number)) << number;
    expect_same_bits(scratch().root() / alone() / last, scratch().root() / out / last);
  }
};

TEST_P(SameBits, OnEveryLayout) {
  const MeshCase layouts[] = {
      {"dp2", {"mesh.dp=2"}},
      {"dp3", {"mesh.dp=3"}},
      {"dp5", {"mesh.dp=5"}},  // which does not divide the batch
      {"dp4_zero1", {"mesh.dp=4", "mesh.zero=1"}},
      {"dp3_zero2", {"mesh.dp=3", "mesh.zero=2"}},
      {"dp3_zero3", {"mesh.dp=3", "mesh.zero=3"}},
      {"dp4_zero3_hsdp", {"mesh.dp=4", "mesh.zero=3", "mesh.zero_ranks=2"}},
      {"dp4_no_overlap", {"mesh.dp=4", "mesh.overlap=false"}},
      {"pp2", {"mesh.pp=2"}},
      {"pp2_dp2_zero1", {"mesh.pp=2", "mesh.dp=2", "mesh.zero=1"}},
      {"pp2_dp2_zero3_full", {"mesh.pp=2", "mesh.dp=2", "mesh.zero=3", "train.recompute=full"}},
      {"pp2_interleaved", {"mesh.pp=2", "pipeline.schedule=interleaved", "pipeline.chunks=2"}},
      {"pp2_zbv", {"mesh.pp=2", "pipeline.schedule=zbv", "pipeline.chunks=2"}},
      {"pp2_dualpipe_zero1", {"mesh.pp=2", "mesh.zero=1", "pipeline.schedule=dualpipe", "pipeline.chunks=2"}},
  };
  for (const MeshCase& layout : layouts) {
    SCOPED_TRACE(layout.name);
    expect_as_alone(run(layout.name, layout.settings));
  }
}

TEST_P(SameBits, WhenLayoutsFollowOneAnother) {
  const Settings chain[] = {{"mesh.dp=4", "train.steps=1"},
                            {"mesh.dp=3", "mesh.zero=1", "train.steps=2"},
                            {"mesh.pp=2", "mesh.dp=2", "mesh.zero=2", "train.steps=3"},
                            {"mesh.dp=4", "mesh.zero=3"}};
  for (const Settings& settings : chain) run("chain", settings);
  expect_as_alone(file() + "-chain", {"loss", "grad_norm"});  // every part of the chain ends with a validation
}

// Keys of dropout and of stochastic rounding, and blocks of states, follow from places in the whole.
TEST(SameBitsOf, EightBitStatesAndDropout) {
  ScratchRun scratch("states");
  const Settings more{"optimizer.state=int8", "model.dropout=0.1", "train.steps=3", "train.eval_every=0",
                      "checkpoint.every=3"};
  Settings alone = reproducible(more), shards = reproducible(more);
  shards.insert(shards.end(), {"mesh.dp=3", "mesh.zero=2"});
  scratch.run("alone", alone);
  scratch.run("shards", shards);
  EXPECT_EQ(scratch.metric("shards", "grad_norm"), scratch.metric("alone", "grad_norm"));
  expect_same_bits(scratch.root() / "alone" / "step-000003", scratch.root() / "shards" / "step-000003");
}

INSTANTIATE_TEST_SUITE_P(Models, SameBits, testing::Values("tiny-llama.toml", "tiny-gpt2.toml"), [](const auto& info) {
  std::string name = info.param;
  return name.substr(5, name.find('.') - 5);
});

// Sums that are rounded do differ: the comparison above is not empty. And exact sums train as rounded ones do.
TEST(RoundedSums, DependOnTheMesh) {
  ScratchRun scratch("rounded");
  Settings exact = reproducible({"model.dropout=0.1"}), rounded = reproducible({"model.dropout=0.1"});
  rounded.push_back("train.reproducible=none");
  scratch.run("one", rounded);
  rounded.push_back("mesh.dp=2");
  scratch.run("two", rounded);
  // Not every last bit of the weights shows in a norm.
  auto weights = [&](const char* run) { return read_file(scratch.root() / run / "step-000004" / "model.safetensors"); };
  EXPECT_TRUE(weights("one") != weights("two"));
  scratch.run("exact", exact);
  exact.push_back("mesh.dp=2");
  scratch.run("exact2", exact);
  EXPECT_EQ(scratch.metric("exact", "grad_norm"), scratch.metric("exact2", "grad_norm"));
  for (const std::string& number : kNumbers)
    for (size_t i = 0; i < scratch.metric("one", number).size(); ++i) {
      double expected = std::stod(scratch.metric("one", number)[i]);
      EXPECT_NEAR(std::stod(scratch.metric("exact", number)[i]), expected, 1e-5 * expected) << number;
    }
}

TEST(Reproducible, RefusesToResumeWithOtherMicrobatches) {
  ScratchRun scratch("units");
  scratch.run("run", reproducible({"train.steps=1", "train.eval_every=0"}));
  for (const char* other : {"batch.microbatch=2", "mesh.tp=2", "mesh.cp=2"}) {
    try {
      scratch.run("run", reproducible({"train.steps=2", "train.eval_every=0", other}));
      FAIL() << other;
    } catch (const UserError& error) {
      EXPECT_NE(error.complaints().front().text().find("train.reproducible"), std::string::npos) << other;
    }
  }
}

}  // namespace
}  // namespace sextant
