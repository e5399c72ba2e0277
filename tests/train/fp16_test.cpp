// Training in fp16: loss scales and skipped steps of torch.amp.GradScaler around a model in torch.float16, step by step
// (tests/peers/make_fp16_fixture.py), the same on every mesh and after a resume; what is kept of a weight; what is
// refused.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/exit_code.h"
#include "checkout.h"
#include "ckpt/safetensors.h"
#include "optimizer_run.h"
#include "scratch_run.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kFp16Fixtures = fs::path(checkout::kSources) / "tests/fixtures";

// A step of the fixture.
struct ScaledStep {
  double factor = 1, loss = 0, used = 0;
  bool skipped = false;
};

std::vector<ScaledStep> fp16_steps() {
  std::istringstream lines(read_file(kFp16Fixtures / "grad_scaler/fp16_training.csv"));
  std::string line;
  std::getline(lines, line);  // the version and the settings
  std::getline(lines, line);  // names of columns
  std::vector<ScaledStep> steps;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::vector<double> row;
    for (std::string field; std::getline(fields, field, ',');) row.push_back(std::stod(field));
    steps.push_back({row[0], row[1], row[2], row[3] != 0});
  }
  return steps;
}

std::vector<int32_t> fp16_tokens(const SafetensorsFile& file, std::string_view name) {
  TensorView tensor = file.tensor(name);
  std::vector<int32_t> numbers(static_cast<size_t>(tensor.shape.count()));
  std::memcpy(numbers.data(), tensor.bytes.data(), tensor.bytes.size());
  return numbers;
}

OptimizerRun fp16_run(const std::vector<ScaledStep>& steps) {
  SafetensorsFile batch(kFp16Fixtures / "models/llama/expected.safetensors");
  TensorView ids = batch.tensor("input_ids");
  OptimizerRun run{.model = kFp16Fixtures / "models/llama",
                   .mesh = Mesh{{{"pp", 1}, {"dp", 1}, {"cp", 1}, {"tp", 1}}},
                   .lr = 1e-2F,
                   .rows = ids.shape[0],
                   .seq = ids.shape[1],
                   .tokens = fp16_tokens(batch, "input_ids"),
                   .targets = fp16_tokens(batch, "targets"),
                   .last_step = std::ssize(steps),
                   .dtype = DType::f16,
                   .loss_scaling = {{.initial = 0x1p30, .growth_factor = 2, .backoff = 0.25, .growth_interval = 3}}};
  run.optimizer.settings.eps = 1e-3;
  run.optimizer.settings.weight_decay = 0.1;
  run.optimizer.clip = 1;
  int32_t applied = 0;
  for (const ScaledStep& step : steps) {
    run.factors.push_back(step.factor);
    run.step_numbers.push_back(applied + 1);  // torch's optimizer does not count a step that is skipped
    applied += !step.skipped;
  }
  return run;
}

struct Fp16Mesh {
  const char* name;
  int dp = 1, cp = 1, tp = 1;
  Parallel parallel = {};
};

TEST(Fp16, FollowsGradScalerStepByStepOnEveryMesh) {
  const std::vector<ScaledStep> steps = fp16_steps();
  ASSERT_EQ(steps.size(), 24u);
  ASSERT_EQ(std::ranges::count_if(steps, [](const ScaledStep& s) { return s.skipped; }), 8);  // two of them planted
  ScratchRun scratch("fp16-torch");
  for (const Fp16Mesh& mesh :
       {Fp16Mesh{"one"}, Fp16Mesh{"dp2", 2}, Fp16Mesh{"tp2", 1, 1, 2}, Fp16Mesh{"dp2_zero1", 2, 1, 1, {.zero = 1}},
        Fp16Mesh{"dp2_tp2_zero3", 2, 1, 2, {.sequence = true, .zero = 3}}, Fp16Mesh{"cp2", 1, 2, 1}}) {
    OptimizerRun run = fp16_run(steps);
    run.mesh = Mesh{{{"pp", 1}, {"dp", mesh.dp}, {"cp", mesh.cp}, {"tp", mesh.tp}}};
    run.parallel = mesh.parallel;
    std::vector<double> scales;
    run.used_scales = &scales;
    std::vector<double> losses = run_and_save(run, scratch.root() / mesh.name);
    ASSERT_EQ(scales.size(), steps.size()) << mesh.name;
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(scales[i], steps[i].used) << mesh.name << " step " << i;
      // Values are rounded in other places than there: 11 bits of them.
      EXPECT_NEAR(losses[i], steps[i].loss, 4e-3 * steps.front().loss) << mesh.name << " step " << i;
      if (i == 0 || !steps[i - 1].skipped) continue;
      EXPECT_EQ(losses[i], losses[i - 1]) << mesh.name << " step " << i;
    }
  }
}

// Saved between an overflow and the growth after it, on another mesh of the same sums.
TEST(Fp16, ResumesWithTheSameBits) {
  const std::vector<ScaledStep> steps = fp16_steps();
  ScratchRun scratch("fp16-resume");
  OptimizerRun run = fp16_run(steps);
  std::vector<double> whole = run_and_save(run, scratch.root() / "whole");
  run.last_step = 13;
  run_and_save(run, scratch.root() / "first");
  run.from = scratch.root() / "first";
  run.last_step = std::ssize(steps);
  std::vector<double> scales;
  run.used_scales = &scales;
  std::vector<double> rest = run_and_save(run, scratch.root() / "second");
  for (size_t i = 0; i < rest.size(); ++i) {
    EXPECT_EQ(rest[i], whole[i + 13]) << i;
    EXPECT_EQ(scales[i], steps[i + 13].used) << i;
  }
  for (const char* file : {"model.safetensors", "optimizer.safetensors"})
    EXPECT_EQ(read_file(scratch.root() / "second" / file), read_file(scratch.root() / "whole" / file)) << file;
}

std::vector<std::string> fp16_settings(std::vector<std::string> more) {
  for (const char* setting : {"train.precision=fp16", "batch.seq=32", "batch.microbatch=1", "batch.sequences=4",
                              "optimizer.schedule=constant", "train.eval_every=0", "train.steps=8",
                              "train.check_replicas_every=1", "train.non_finite_steps=1", "checkpoint.at_end=false"})
    more.emplace_back(setting);
  return more;
}

// Overflows of f16, not of f32: 2^32 / 128 tokens has to pass through values of 65504 at most.
TEST(Fp16, RunsScaleAlikeOnEveryMeshAndResumeExactly) {
  ScratchRun scratch("fp16-meshes");
  const std::vector<std::string> common{"train.loss_scale.initial=4294967296", "train.loss_scale.backoff=0.0625",
                                        "train.loss_scale.growth_interval=2"};
  auto with = [&](std::vector<std::string> mesh) {
    mesh.insert(mesh.end(), common.begin(), common.end());
    return fp16_settings(mesh);
  };
  EXPECT_EQ(scratch.run("one", with({"checkpoint.every=5"})).outcome, ExitCode::finished);
  const std::vector<std::string> scales = scratch.metric("one", "loss_scale"), losses = scratch.losses("one");
  EXPECT_GE(scratch.metric("one", "update_skipped").size(), 2u);
  EXPECT_LT(scratch.metric("one", "update_skipped").size(), 6u);
  for (const auto& [name, mesh] :
       std::map<std::string, std::vector<std::string>>{{"dp2", {"mesh.dp=2"}},
                                                       {"tp2", {"mesh.tp=2"}},
                                                       {"pp2", {"mesh.pp=2"}},
                                                       {"dp2_zero1", {"mesh.dp=2", "mesh.zero=1"}},
                                                       {"dp2_zero3", {"mesh.dp=2", "mesh.zero=3"}}}) {
    scratch.run(name, with(mesh));
    EXPECT_EQ(scratch.metric(name, "loss_scale"), scales) << name;
    std::vector<std::string> found = scratch.losses(name);
    ASSERT_EQ(found.size(), losses.size()) << name;
    for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(std::stod(found[i]), std::stod(losses[i]), 5e-3) << name;
  }
  scratch.run("again", with({"checkpoint.resume=" + (scratch.root() / "one/step-000005").string()}));
  EXPECT_EQ(scratch.losses("again"), std::vector<std::string>(losses.begin() + 5, losses.end()));
  EXPECT_EQ(scratch.metric("again", "loss_scale"), std::vector<std::string>(scales.begin() + 5, scales.end()));
}

// By default losses are scaled; a run learns as it does in f32, and not with its bits.
TEST(Fp16, LearnsAsInF32) {
  ScratchRun scratch("fp16-learns");
  auto settings = [](const char* precision) {
    return std::vector<std::string>{std::string("train.precision=") + precision, "train.steps=12", "train.eval_every=0",
                                    "checkpoint.at_end=false"};
  };
  scratch.run("f32", settings("f32"));
  scratch.run("fp16", settings("fp16"));
  std::vector<std::string> wide = scratch.losses("f32"), narrow = scratch.losses("fp16");
  ASSERT_EQ(wide.size(), narrow.size());
  EXPECT_NE(narrow, wide);
  for (size_t i = 0; i < wide.size(); ++i) EXPECT_NEAR(std::stod(narrow[i]), std::stod(wide[i]), 0.02) << i;
  EXPECT_EQ(scratch.metric("fp16", "loss_scale").front(), "65536.0");
  EXPECT_TRUE(scratch.metric("f32", "loss_scale").empty());
}

// Weights and activations have two bytes, gradients and masters four.
TEST(Fp16, WeightsHaveTheirF32Beside) {
  ModelSpec spec = spec_from_hf_config(read_file(kFp16Fixtures / "models/llama/config.json"), "config.json");
  Mesh mesh{{{"pp", 1}, {"dp", 1}, {"cp", 1}, {"tp", 1}}};
  Program program = lower(build_model(spec, {.batch = 2, .seq = 16, .dtype = DType::f16}, mesh), cpu_target(1),
                          {.train = Optimizer{}});
  int64_t weights = 0, held = 0, masters = 0;
  for (const Value& value : program.values) {
    if (value.kind == ValueKind::parameter) weights += value.local.count(), held += value.local_bytes().n;
    if (value.kind == ValueKind::low_bits) masters += value.local_bytes().n;
    bool wide = value.kind == ValueKind::gradient || value.kind == ValueKind::low_bits;
    EXPECT_TRUE(!wide || value.dtype == DType::f32) << value.path;
  }
  EXPECT_EQ(held, 2 * weights);
  EXPECT_EQ(masters, 4 * weights);
}

TEST(Fp16, RefusesWhatDoesNotGoTogether) {
  ScratchRun scratch("fp16-refused");
  auto message = [&](std::vector<std::string> settings) -> std::string {
    settings.emplace_back("train.precision=fp16");
    try {
      scratch.run("refused", settings);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message({"train.master_weights=bf16"}).find("bf16 weights may overflow in fp16"), std::string::npos);
  EXPECT_NE(message({"train.loss_scale.initial=0.5"}).find("from the minimum"), std::string::npos);
}

}  // namespace
}  // namespace sextant
