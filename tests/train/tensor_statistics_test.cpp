// Statistics of layers: what they say is what PyTorch's hooks see and what checkpoints hold, on every mesh alike, and
// measuring changes nothing that is trained.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "checkout.h"
#include "ckpt/weights_reader.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "scratch_run.h"
#include "targets/cpu/cpu_target.h"
#include "train/data/dataset.h"
#include "train/noise_scale.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using TensorSettings = std::vector<std::string>;

TensorSettings tensor_settings(const TensorSettings& more) {
  TensorSettings all{"batch.seq=32",
                     "batch.sequences=4",
                     "batch.microbatch=1",
                     "optimizer.lr=1e-3",
                     "optimizer.schedule=constant",
                     "optimizer.warmup=0",
                     "train.steps=2",
                     "train.eval_every=0",
                     "checkpoint.at_end=false",
                     "log.tensor_stats_every=1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<Json> statistics_lines(const ScratchRun& scratch, const std::string& out) {
  std::vector<Json> lines;
  std::istringstream text(read_file(scratch.root() / out / "metrics.jsonl"));
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

const std::vector<std::string>& fields_of_layers() {
  static const std::vector<std::string> all{"activation_rms",
                                            "activation_max",
                                            "activation_underflow",
                                            "activation_overflow",
                                            "activation_gradient_rms",
                                            "gradient_max",
                                            "gradient_underflow",
                                            "activation_gradient_max",
                                            "gradient_overflow",
                                            "gradient_rms",
                                            "weight_rms",
                                            "weight_max",
                                            "update_ratio",
                                            "attention_logit_max"};
  return all;
}

void expect_near_lists(const Json& got, const Json& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    double a = got[i].get<double>(), b = expected[i].get<double>();
    EXPECT_NEAR(a, b, tolerance * std::abs(b) + 1e-12) << what << ", layer " << i;
  }
}

TEST(TensorStatistics, MeasuringStepsTrainAsOthersDo) {
  ScratchRun scratch("measured-bits");
  scratch.run("plain", tensor_settings({"log.tensor_stats_every=0", "train.steps=4"}));
  scratch.run("measured", tensor_settings({"log.tensor_stats_every=2", "train.steps=4", "log.grad_noise_scale=true"}));
  EXPECT_EQ(scratch.losses("measured"), scratch.losses("plain"));
  EXPECT_EQ(scratch.metric("measured", "grad_norm"), scratch.metric("plain", "grad_norm"));
  std::vector<Json> lines = statistics_lines(scratch, "measured");
  ASSERT_EQ(lines.size(), 4u);
  for (size_t i = 0; i < lines.size(); ++i)
    for (const std::string& field : fields_of_layers())
      EXPECT_EQ(lines[i].contains(field), i % 2 == 1) << field << " in step " << i + 1;
  EXPECT_FALSE(statistics_lines(scratch, "plain")[1].contains("weight_rms"));
}

struct TensorMesh {
  const char* name;
  TensorSettings settings;
};

class TensorMeshes : public testing::TestWithParam<TensorMesh> {};

TEST_P(TensorMeshes, SayWhatOneRankSays) {
  ScratchRun scratch(fmt::format("measured-{}", GetParam().name));
  TensorSettings common{"model.layers=2", "optimizer.eps=1e-6", "log.tensor_stats_format=f16"},
      meshed = GetParam().settings;
  meshed.insert(meshed.end(), common.begin(), common.end());
  scratch.run("one", tensor_settings(common));
  scratch.run("mesh", tensor_settings(meshed));
  std::vector<Json> one = statistics_lines(scratch, "one"), mesh = statistics_lines(scratch, "mesh");
  std::vector<std::string> fields = fields_of_layers();
  fields.push_back("inner_gradient_underflow");  // of f16
  for (size_t step = 0; step < one.size(); ++step)
    for (const std::string& field : fields) {
      ASSERT_TRUE(mesh[step].contains(field)) << field;
      // One element more or less may round to zero.
      expect_near_lists(mesh[step][field], one[step][field], field.ends_with("gradient_underflow") ? 0.02 : 2e-4,
                        field);
    }
}

// After a norm of ones and zeros the rows of a layer have a root mean square of 1. On one rank nothing but the head
// reads the last layer's.
TEST(TensorStatistics, HaveTheLastLayerWhereNoNormFollowsIt) {
  ScratchRun scratch("measured-post-norm");
  scratch.run("run", tensor_settings({"model.architecture=opt", "model.kv_heads=4", "model.norm_placement=post",
                                      "model.layers=2", "train.steps=1"}));
  Json step = statistics_lines(scratch, "run")[0];
  for (int layer = 0; layer < 2; ++layer) {
    ASSERT_TRUE(step["activation_rms"][layer].is_number()) << layer;
    EXPECT_NEAR(step["activation_rms"][layer].get<double>(), 1, 1e-3) << layer;
    EXPECT_GT(step["activation_gradient_rms"][layer].get<double>(), 0) << layer;
  }
}

// ZeRO 3 gathers codes there, which are made of shards ahead of the blocks.
TEST(TensorStatistics, HaveTheWeightsThatAreGatheredInFp8) {
  ScratchRun scratch("measured-fp8-shards");
  const TensorSettings common{"train.precision=fp8", "train.steps=1"};
  scratch.run("one", tensor_settings(common));
  scratch.run("mesh", tensor_settings({common[0], common[1], "mesh.dp=2", "mesh.zero=3"}));
  Json one = statistics_lines(scratch, "one")[0], mesh = statistics_lines(scratch, "mesh")[0];
  for (const char* field : {"weight_rms", "weight_max", "gradient_rms", "update_ratio"})
    expect_near_lists(mesh[field], one[field], 0.05, field);
}

INSTANTIATE_TEST_SUITE_P(Train, TensorMeshes,
                         testing::Values(TensorMesh{"tp2", {"mesh.tp=2"}}, TensorMesh{"dp2", {"mesh.dp=2"}},
                                         TensorMesh{"pp2", {"mesh.pp=2"}}, TensorMesh{"cp2", {"mesh.cp=2"}},
                                         TensorMesh{"zero3_dp2", {"mesh.dp=2", "mesh.zero=3"}},
                                         TensorMesh{"tp2_sp_zb",
                                                    {"mesh.tp=2", "mesh.sequence_parallel=true", "mesh.pp=2",
                                                     "pipeline.schedule=zb-h1", "train.recompute=full"}}),
                         [](const auto& info) { return info.param.name; });

// The weights of a layer in a checkpoint.
std::vector<float> layer_weights(const fs::path& checkpoint, int layer) {
  std::vector<float> all;
  WeightsReader reader(checkpoint);
  for (const std::string& name : reader.names()) {
    if (name.find(fmt::format("layers.{}.", layer)) == std::string::npos) continue;
    TensorView view = reader.tensor(name);
    const auto* numbers = reinterpret_cast<const float*>(view.bytes.data());
    all.insert(all.end(), numbers, numbers + view.bytes.size() / sizeof(float));
  }
  return all;
}

double rms_of(const std::vector<float>& x) {
  double sum = 0;
  for (float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

// Plain gradient descent: the update is the gradient times the rate, and both can be read off checkpoints.
TEST(TensorStatistics, WeightsAndUpdatesAreThoseOfCheckpoints) {
  ScratchRun scratch("measured-weights");
  scratch.run("run", tensor_settings({"optimizer.name=sgd", "optimizer.momentum=0", "optimizer.weight_decay=0",
                                      "optimizer.clip=0", "optimizer.lr=0.5", "checkpoint.every=1"}));
  Json step = statistics_lines(scratch, "run")[1];
  for (int layer = 0; layer < 2; ++layer) {
    std::vector<float> before = layer_weights(scratch.root() / "run/step-000001", layer);
    std::vector<float> after = layer_weights(scratch.root() / "run/step-000002", layer), change, gradient;
    ASSERT_EQ(before.size(), after.size());
    ASSERT_FALSE(after.empty());
    double most = 0, steepest = 0;
    for (size_t i = 0; i < after.size(); ++i) {
      change.push_back(after[i] - before[i]);
      most = std::max(most, std::abs(static_cast<double>(after[i])));
      steepest = std::max(steepest, std::abs(static_cast<double>(change.back())) / 0.5);
    }
    auto of = [&](const char* field) { return step[field][static_cast<size_t>(layer)].get<double>(); };
    EXPECT_NEAR(of("weight_rms"), rms_of(after), 1e-6 * rms_of(after));
    EXPECT_NEAR(of("weight_max"), most, 1e-7);
    EXPECT_NEAR(of("update_ratio"), rms_of(change) / rms_of(after), 1e-5 * rms_of(change) / rms_of(after));
    EXPECT_NEAR(of("gradient_rms"), rms_of(change) / 0.5, 1e-3 * rms_of(change) / 0.5);
    EXPECT_NEAR(of("gradient_max"), steepest, 1e-3 * steepest);
  }
}

// In fp8 a tensor's largest element is the format's largest number, and most others are within its range.
TEST(TensorStatistics, CountWhatFp8LosesToRounding) {
  ScratchRun scratch("measured-fp8");
  scratch.run("run", tensor_settings({"train.precision=fp8", "train.steps=1"}));
  Json step = statistics_lines(scratch, "run")[0];
  for (const char* field :
       {"fp8_activation_underflow", "fp8_activation_saturation", "fp8_gradient_underflow", "fp8_gradient_saturation"}) {
    ASSERT_TRUE(step.contains(field)) << field;
    for (const Json& share : step[field]) {
      EXPECT_LT(share.get<double>(), 0.2) << field;
      if (std::string(field).ends_with("saturation")) {
        EXPECT_GT(share.get<double>(), 0) << field;
      }
    }
  }
}

// A run that measures needs what its measuring Program needs, and says so before it begins.
TEST(TensorStatistics, MemoryIsPlanned) {
  ScratchRun scratch("measured-memory");
  RunConfig run = scratch.config("tiny-llama.toml", tensor_settings({}));
  RunPrograms programs = lower_run(run, resolve_spec(run), cpu_target(2)).programs;
  ASSERT_EQ(programs.measure.size(), 1u);
  EXPECT_EQ(programs.arena_bytes(0), std::max(programs.train[0].arena_bytes, programs.measure[0].arena_bytes));
  scratch.run("run", tensor_settings({}));
  EXPECT_EQ(statistics_lines(scratch, "run")[0]["arena_bytes"].get<int64_t>(), programs.arena_bytes(0));
}

// ---- the gradient noise scale

// With E|G_b|² = |G|² + tr(Σ)/b put in, tr(Σ)/|G|² comes out.
TEST(NoiseScale, FollowsFromNormsAtTwoBatchSizes) {
  const double square = 0.25, trace = 300;
  NoiseScale scale;
  EXPECT_FALSE(scale.tokens());
  for (int step = 0; step < 3; ++step) scale.note(square + trace / 64, 64, square + trace / 1024, 1024);
  ASSERT_TRUE(scale.tokens());
  EXPECT_NEAR(*scale.tokens(), trace / square, 1e-9 * trace / square);
  scale.note(std::nan(""), 64, square, 1024);
  EXPECT_NEAR(*scale.tokens(), trace / square, 1e-9 * trace / square);
}

// Gradients drawn about a mean, with noise of known covariance: many steps' averages find the ratio.
TEST(NoiseScale, OfDrawnGradientsIsTheirOwn) {
  constexpr size_t kDims = 50;
  constexpr int kParts = 8, kSteps = 2000;
  const double kNoise = 3;  // of a sample's element; the mean is 1 in each dim
  uint64_t state = 7;
  auto uniform = [&] {
    return static_cast<double>((state = state * 6364136223846793005u + 1442695040888963407u) >> 11) * 0x1p-53;
  };
  auto normal = [&] { return std::sqrt(-2 * std::log(uniform() + 1e-300)) * std::cos(6.283185307179586 * uniform()); };
  NoiseScale scale;
  double sum = 0;
  int counted = 0;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> mean(kDims);
    double small = 0;
    for (int part = 0; part < kParts; ++part)
      for (double& element : mean) {
        double drawn = 1 + kNoise * normal();
        if (part == 0) small += drawn * drawn;
        element += drawn / kParts;
      }
    double full = 0;
    for (double element : mean) full += element * element;
    scale.note(small, 1, full, kParts);
    if (step >= 200) sum += *scale.tokens(), ++counted;
  }
  // tr(Σ)/|G|² = 9·dims/dims
  EXPECT_NEAR(sum / counted, kNoise * kNoise, 0.1 * kNoise * kNoise);
}

double noise_scale_of(const Json& line) {
  return line.contains("grad_noise_scale") ? line["grad_noise_scale"].get<double>() : std::nan("");
}

TEST(NoiseScale, IsTheSameOnMeshesThatCutNoSamples) {
  ScratchRun scratch("noise-meshes");
  TensorSettings common{"log.tensor_stats_every=0", "log.grad_noise_scale=true", "batch.sequences=8", "train.steps=3",
                        "optimizer.eps=1e-6",       "model.tied_head=false"};
  auto run = [&](const std::string& out, TensorSettings mesh) {
    mesh.insert(mesh.end(), common.begin(), common.end());
    scratch.run(out, tensor_settings(mesh));
    return statistics_lines(scratch, out);
  };
  std::vector<Json> one = run("one", {});
  ASSERT_TRUE(std::isfinite(noise_scale_of(one.back())));
  for (const TensorMesh& mesh : {TensorMesh{"tp2", {"mesh.tp=2"}}, TensorMesh{"pp2", {"mesh.pp=2"}},
                                 TensorMesh{"tp2_sp", {"mesh.tp=2", "mesh.sequence_parallel=true"}}}) {
    std::vector<Json> lines = run(mesh.name, mesh.settings);
    for (size_t i = 0; i < lines.size(); ++i)
      if (one[i].contains("grad_noise_scale")) {
        EXPECT_NEAR(noise_scale_of(lines[i]), noise_scale_of(one[i]), 2e-3 * std::abs(noise_scale_of(one[i])))
            << mesh.name;
      }
  }
  // Where ranks have gradients of their own samples, the parts are smaller and more: another estimate of the same.
  EXPECT_TRUE(std::isfinite(noise_scale_of(run("dp2", {"mesh.dp=2"}).back())));
  EXPECT_TRUE(std::isfinite(noise_scale_of(run("zero2", {"mesh.dp=2", "mesh.zero=2"}).back())));
}

TEST(NoiseScale, IsRefusedWhereOneGradientIsAll) {
  ScratchRun scratch("noise-refused");
  TensorSettings one{"log.grad_noise_scale=true", "batch.sequences=2", "batch.microbatch=2"};
  try {
    scratch.run("one", tensor_settings(one));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("one microbatch"), std::string::npos) << error.what();
  }
  one.push_back("mesh.dp=2");
  one[2] = "batch.microbatch=1";
  EXPECT_NO_THROW(scratch.run("two", tensor_settings(one)));
}

// ---- PyTorch

TEST(TensorStatistics, AreWhatHooksOfPyTorchSee) {
  fs::path python = fs::path(checkout::kSources) / "build/peers/bin/python";
  if (!fs::exists(python)) GTEST_SKIP() << "scripts/peers has not been run";
  ScratchRun scratch("measured-peer");
  // At a rate of 0 the checkpoint has the weights of the step.
  TensorSettings settings = tensor_settings({"checkpoint.every=1", "train.steps=1", "log.grad_noise_scale=true",
                                             "optimizer.lr=0", "batch.sequences=8", "batch.microbatch=4",
                                             "log.tensor_stats_format=f16", "model.tied_head=false"});
  scratch.run("run", settings);
  RunConfig run = scratch.config("tiny-llama.toml", settings);
  ThreadTeam team(1);
  Dataset data = open_dataset(run, resolve_spec(run), team, [](std::string_view) {});
  constexpr int64_t kRows = 8, kSmallRows = 4, kSeq = 32;
  Json ids{{"input_ids", Json::array()}, {"targets", Json::array()}};
  for (int64_t row = 0; row < kRows; ++row) {
    std::vector<int32_t> tokens(kSeq), targets(kSeq);
    data.train.fill(row, 1, tokens, targets);
    ids["input_ids"].push_back(tokens);
    ids["targets"].push_back(targets);
  }
  std::string file = (scratch.root() / "ids.json").string(), out = (scratch.root() / "out.json").string();
  write_file_atomically(file, ids.dump());
  ASSERT_EQ(
      std::system(fmt::format("{} {}/tests/peers/tensor_statistics_peer.py {} {} {} > {}", python.string(),
                              checkout::kSources, (scratch.root() / "run/step-000001").string(), file, kSmallRows, out)
                      .c_str()),
      0);
  Json theirs = Json::parse(read_file(out)), ours = statistics_lines(scratch, "run")[0];
  for (const char* field : {"activation_rms", "activation_max", "activation_gradient_rms", "activation_gradient_max",
                            "attention_logit_max", "gradient_rms", "gradient_max"})
    expect_near_lists(ours[field], theirs[field], 1e-4, field);
  for (size_t layer = 0; layer < 2; ++layer)
    EXPECT_NEAR(ours["gradient_underflow"][layer].get<double>(), theirs["gradient_underflow"][layer].get<double>(),
                2e-3);
  expect_near_lists(ours["inner_gradient_underflow"], theirs["inner_gradient_underflow"], 0.05,
                    "inner_gradient_underflow");
  double full = theirs["full_squares"].get<double>();
  EXPECT_NEAR(ours["grad_norm"].get<double>(), std::sqrt(full), 1e-4 * std::sqrt(full));
  NoiseScale scale;
  scale.note(theirs["small_squares"].get<double>(), kSmallRows * kSeq, full, kRows * kSeq);
  ASSERT_EQ(ours.contains("grad_noise_scale"), scale.tokens().has_value());
  if (scale.tokens()) {
    EXPECT_NEAR(noise_scale_of(ours), *scale.tokens(), 1e-3 * *scale.tokens());
  }
}

}  // namespace
}  // namespace sextant
