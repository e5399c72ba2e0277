// Training in bf16 on a CPU, which widens its operands to f32 and rounds what comes out: step by step as torch does it
// (tests/peers/make_bf16_fixture.py), with every optimizer, on meshes as on one rank, and after a resume.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/exit_code.h"
#include "checkout.h"
#include "ckpt/safetensors.h"
#include "optimizer_run.h"
#include "scratch_run.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kBf16Fixtures = fs::path(checkout::kSources) / "tests/fixtures";

std::vector<double> losses_of_torch() {
  std::istringstream lines(read_file(kBf16Fixtures / "bf16_training.csv"));
  std::string line;
  std::getline(lines, line);  // the version and the settings
  std::getline(lines, line);  // names of columns
  std::vector<double> losses;
  while (std::getline(lines, line)) losses.push_back(std::stod(line));
  return losses;
}

std::vector<int32_t> bf16_tokens(const SafetensorsFile& file, std::string_view name) {
  TensorView tensor = file.tensor(name);
  std::vector<int32_t> numbers(static_cast<size_t>(tensor.shape.count()));
  std::memcpy(numbers.data(), tensor.bytes.data(), tensor.bytes.size());
  return numbers;
}

TEST(Bf16, FollowsTorchStepByStepOnEveryMesh) {
  const std::vector<double> expected = losses_of_torch();
  ASSERT_EQ(expected.size(), 16u);
  ASSERT_LT(expected.back(), 0.5 * expected.front());
  SafetensorsFile batch(kBf16Fixtures / "models/llama/expected.safetensors");
  TensorView ids = batch.tensor("input_ids");
  OptimizerRun run{.model = kBf16Fixtures / "models/llama",
                   .mesh = {},
                   .lr = 1e-2F,
                   .rows = ids.shape[0],
                   .seq = ids.shape[1],
                   .tokens = bf16_tokens(batch, "input_ids"),
                   .targets = bf16_tokens(batch, "targets"),
                   .last_step = std::ssize(expected),
                   .dtype = DType::bf16};
  run.optimizer.settings.eps = 1e-3;
  run.optimizer.settings.weight_decay = 0.1;
  run.optimizer.clip = 1;
  struct Layout {
    const char* name;
    int dp = 1, cp = 1, tp = 1;
    Parallel parallel = {};
  };
  ScratchRun scratch("bf16-torch");
  for (const Layout& layout :
       {Layout{"one"}, Layout{"dp2_zero1", 2, 1, 1, {.zero = 1}}, Layout{"tp2", 1, 1, 2}, Layout{"cp2", 1, 2, 1},
        Layout{"dp2_tp2_zero3", 2, 1, 2, {.sequence = true, .zero = 3}}}) {
    run.mesh = Mesh{{{"pp", 1}, {"dp", layout.dp}, {"cp", layout.cp}, {"tp", layout.tp}}};
    run.parallel = layout.parallel;
    const std::vector<double> losses = run_and_save(run, scratch.root() / layout.name);
    ASSERT_EQ(losses.size(), expected.size()) << layout.name;
    // Values are rounded in other places than there: 8 bits of them.
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], expected[i], 0.01 * expected.front()) << layout.name << " step " << i;
  }
}

std::vector<std::string> bf16_settings(std::vector<std::string> more) {
  for (const char* setting :
       {"train.precision=bf16", "batch.seq=32", "batch.microbatch=1", "batch.sequences=4",
        "optimizer.schedule=constant", "train.eval_every=0", "train.steps=6", "train.check_replicas_every=1"})
    more.emplace_back(setting);
  return more;
}

struct Bf16Case {
  const char* name;
  std::vector<std::string> settings;
};
void PrintTo(const Bf16Case& c, std::ostream* out) {
  *out << c.name;
}

class Bf16Optimizers : public testing::TestWithParam<Bf16Case> {};

TEST_P(Bf16Optimizers, AgreeWithOneRankAndResumeExactly) {
  ScratchRun scratch(std::string("bf16-") + GetParam().name);
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), GetParam().settings.begin(), GetParam().settings.end());
    return bf16_settings(more);
  };
  ASSERT_EQ(scratch.run("one", with({"checkpoint.at_end=false"})).outcome, ExitCode::finished);
  const std::vector<std::string> mesh{"mesh.dp=2", "mesh.tp=2", "mesh.zero=1"};
  auto on_mesh = [&](std::vector<std::string> more) {
    more.insert(more.end(), mesh.begin(), mesh.end());
    return with(more);
  };
  scratch.run("mesh", on_mesh({"checkpoint.every=4"}));
  const std::vector<std::string> one = scratch.losses("one"), found = scratch.losses("mesh");
  ASSERT_EQ(found.size(), 6u);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(std::stod(found[i]), std::stod(one[i]), 5e-3) << i;
  EXPECT_LT(std::stod(one.back()), std::stod(one.front()));
  scratch.run("again", on_mesh({"checkpoint.resume=" + (scratch.root() / "mesh/step-000004").string()}));
  EXPECT_EQ(scratch.losses("again"), std::vector<std::string>(found.begin() + 4, found.end()));
  for (const char* file : {"model.safetensors", "optimizer.safetensors"})
    EXPECT_EQ(read_file(scratch.root() / "again/step-000006" / file),
              read_file(scratch.root() / "mesh/step-000006" / file))
        << file;
}

INSTANTIATE_TEST_SUITE_P(
    All, Bf16Optimizers,
    testing::Values(Bf16Case{"adamw", {"optimizer.name=adamw"}}, Bf16Case{"adamw_bf16", {"optimizer.state=bf16"}},
                    Bf16Case{"adamw_int8", {"optimizer.state=int8"}},
                    Bf16Case{"rounded_weights", {"train.master_weights=bf16"}},
                    Bf16Case{"rounded_all", {"train.master_weights=bf16", "optimizer.state=bf16"}},
                    Bf16Case{"sgd", {"optimizer.name=sgd", "optimizer.lr=0.1"}},
                    Bf16Case{"momentum_0", {"optimizer.name=sgd", "optimizer.lr=0.1", "optimizer.momentum=0"}},
                    Bf16Case{"lion", {"optimizer.name=lion", "optimizer.lr=3e-4"}},
                    Bf16Case{"adafactor", {"optimizer.name=adafactor", "optimizer.lr=1e-2"}},
                    Bf16Case{"muon", {"optimizer.name=muon"}},
                    Bf16Case{"offload", {"offload.optimizer=true", "offload.weights=true"}}),
    [](const auto& info) { return info.param.name; });

// A run learns as it does in f32, not with its bits, and its weights keep the precision of f32.
TEST(Bf16, LearnsAsInF32WithWeightsOfF32) {
  ScratchRun scratch("bf16-learns");
  auto settings = [](const char* precision) {
    return std::vector<std::string>{std::string("train.precision=") + precision, "train.steps=12",
                                    "train.eval_every=0"};
  };
  scratch.run("f32", settings("f32"));
  scratch.run("bf16", settings("bf16"));
  const std::vector<std::string> wide = scratch.losses("f32"), narrow = scratch.losses("bf16");
  ASSERT_EQ(wide.size(), narrow.size());
  EXPECT_NE(narrow, wide);
  for (size_t i = 0; i < wide.size(); ++i) EXPECT_NEAR(std::stod(narrow[i]), std::stod(wide[i]), 0.05) << i;
  SafetensorsFile file(scratch.root() / "bf16/step-000012/model.safetensors");
  TensorView weight = file.tensor("model.embed_tokens.weight");
  std::vector<float> numbers(static_cast<size_t>(weight.shape.count()));
  ASSERT_EQ(weight.bytes.size(), numbers.size() * sizeof(float));
  std::memcpy(numbers.data(), weight.bytes.data(), weight.bytes.size());
  auto low_bits = [](float x) { return (std::bit_cast<uint32_t>(x) & 0xFFFFu) != 0; };
  EXPECT_GT(std::ranges::count_if(numbers, low_bits), std::ssize(numbers) * 9 / 10);
}

// Weights have two bytes to compute with and two beside them, gradients four.
TEST(Bf16, WeightsHaveTheirLowHalvesBeside) {
  ModelSpec spec = spec_from_hf_config(read_file(kBf16Fixtures / "models/llama/config.json"), "config.json");
  Mesh mesh{{{"pp", 1}, {"dp", 1}, {"cp", 1}, {"tp", 1}}};
  Program program = lower(build_model(spec, {.batch = 2, .seq = 16, .dtype = DType::bf16}, mesh), cpu_target(1),
                          {.train = Optimizer{}});
  int64_t weights = 0, held = 0, low = 0;
  for (const Value& value : program.values) {
    if (value.kind == ValueKind::parameter) weights += value.local.count(), held += value.local_bytes().n;
    if (value.kind == ValueKind::low_bits) low += value.local_bytes().n;
    EXPECT_TRUE(value.kind != ValueKind::gradient || value.dtype == DType::f32) << value.path;
  }
  EXPECT_EQ(held, 2 * weights);
  EXPECT_EQ(low, 2 * weights);
}

}  // namespace
}  // namespace sextant
