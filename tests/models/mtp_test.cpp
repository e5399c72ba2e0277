// Multi-token prediction against PyTorch (tests/peers/make_mtp_fixtures.py): losses, every gradient and twenty steps;
// weights for which its loss is known; and its tensors in files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "checkout.h"
#include "ckpt/safetensors_writer.h"
#include "ir/mtp_paths.h"
#include "model_results.h"
#include "models/presets.h"
#include "optim/optimizer.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kMtpFixture = fs::path(checkout::kSources) / "tests/fixtures/mtp";
constexpr int64_t kDepths = 2;
constexpr float kMtpWeight = 0.3f;  // WEIGHT of the script

double length_of(std::span<const float> x) {
  double sum = 0;
  for (float v : x) sum += static_cast<double>(v) * v;
  return std::sqrt(sum);
}

double distance_of(std::span<const float> a, std::span<const float> b) {
  std::vector<float> difference(a.begin(), a.end());
  for (size_t i = 0; i < a.size(); ++i) difference[i] -= b[i];
  return length_of(difference);
}

int64_t counted(const std::vector<int32_t>& targets) {
  return std::count_if(targets.begin(), targets.end(), [](int32_t t) { return t >= 0; });
}

// Feeds the batch of the fixture; after a run, losses() are the means over the targets that count: the model's own,
// then those of each depth.
class FedModel {
 public:
  FedModel(const SafetensorsFile& batch, const LowerOptions& options)
      : model(kMtpFixture, {.batch = batch.tensor("input_ids").shape[0], .seq = batch.tensor("input_ids").shape[1]},
              options) {
    write("tokens", integers(batch.tensor("input_ids")));
    std::vector<int32_t> targets = integers(batch.tensor("targets"));
    write("targets", targets);
    scales_.push_back(1.0f / static_cast<float>(counted(targets)));
    write_value(*model.bound, model.program.at("loss_scale"), scales_.back());
    for (int64_t depth = 1; depth <= kDepths; ++depth) {
      MtpPaths paths = mtp_paths(depth);
      write(paths.tokens, integers(batch.tensor(paths.tokens)));
      targets = integers(batch.tensor(paths.targets));
      write(paths.targets, targets);
      scales_.push_back(1.0f / static_cast<float>(counted(targets)));
      write_value(*model.bound, model.program.at(paths.scale), scales_.back() * kMtpWeight / kDepths);
    }
  }

  std::vector<float> losses() const {
    std::vector<float> found{read_value<float>(*model.bound, model.program.at("loss")) * scales_[0]};
    for (int64_t depth = 1; depth <= kDepths; ++depth)
      found.push_back(read_value<float>(*model.bound, model.program.at(mtp_paths(depth).loss)) *
                      scales_[static_cast<size_t>(depth)]);
    return found;
  }

  void write(std::string_view path, const std::vector<int32_t>& rows) {
    model.bound->write(model.program.at(path), std::as_bytes(std::span(rows)));
  }
  void write(std::string_view path, const std::vector<float>& weight) {
    ASSERT_EQ(std::ssize(weight), model.program.at(path).shape.count()) << path;
    model.bound->write(model.program.at(path), std::as_bytes(std::span(weight)));
  }
  void fill(std::string_view path, float x) {
    write(path, std::vector<float>(static_cast<size_t>(model.program.at(path).shape.count()), x));
  }

  Loaded model;

 private:
  std::vector<float> scales_;
};

TEST(MultiTokenPrediction, LossesAndEveryGradientAreThoseOfTorch) {
  SafetensorsFile expected(kMtpFixture / "expected.safetensors");
  for (RecomputeMode mode : {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full}) {
    LowerOptions options{.train = Optimizer{}};
    options.plan.recompute = mode;
    FedModel fed(expected, options);
    fed.model.bound->run({.region = RegionKind::forward});
    fed.model.bound->run({.region = RegionKind::backward});
    std::vector<float> losses = fed.losses();
    for (int64_t depth = 0; depth <= kDepths; ++depth) {
      std::string name = depth == 0 ? "loss" : mtp_paths(depth).loss;
      float wanted = floats(expected.tensor(name))[0];
      EXPECT_NEAR(losses[static_cast<size_t>(depth)], wanted, 1e-5 * wanted) << name;
    }
    NamedTensors ours;
    double all = 0;
    for (const HfTensor& tensor : model_of(fed.model.spec).tensors(fed.model.spec))
      if (!tensor.copy && fed.model.program.at(tensor.parameter).is_trained()) {
        add_file_gradient(fed.model, tensor, ours);
        all += std::pow(length_of(floats(expected.tensor("grad." + tensor.name))), 2);
      }
    EXPECT_GT(ours.size(), 100U);
    for (const auto& [name, tensor] : ours) {
      std::vector<float> theirs = floats(expected.tensor(name));
      ASSERT_EQ(tensor.values.size(), theirs.size()) << name;
      double size = length_of(theirs), floor = (size < 1e-6 * std::sqrt(all) ? 1e-2 : 1e-4) * std::sqrt(all);
      EXPECT_LE(distance_of(tensor.values, theirs), 1e-5 * std::max(size, floor)) << name;
    }
  }
}

TEST(MultiTokenPrediction, TwentyStepsAreThoseOfTorch) {
  SafetensorsFile expected(kMtpFixture / "expected.safetensors");
  FedModel fed(expected, {.train = fixture_optimizer()});
  std::vector<float> main = floats(expected.tensor("train_losses")),
                     ahead = floats(expected.tensor("train_mtp_losses"));
  write_value(*fed.model.bound, fed.model.program.at("lr"), kFixtureLearningRate);
  for (int32_t step = 1; step <= 20; ++step) {
    write_value(*fed.model.bound, fed.model.program.at("step"), step);
    run_schedule(*fed.model.bound);
    std::vector<float> losses = fed.losses();
    size_t at = static_cast<size_t>(step - 1);
    EXPECT_NEAR(losses[0], main[at], 1e-5 * main[at]) << "step " << step;
    EXPECT_NEAR((losses[1] + losses[2]) / kDepths, ahead[at], 1e-5 * ahead[at]) << "step " << step;
  }
  for (const HfTensor& tensor : model_of(fed.model.spec).tensors(fed.model.spec)) {
    const Value& value = fed.model.program.at(tensor.parameter);
    if (tensor.copy || !value.is_trained()) continue;
    std::vector<float> packed = fed.model.read(tensor.parameter),
                       theirs = floats(expected.tensor("param." + tensor.name));
    int64_t columns = value.shape.rank() == 2 ? value.shape[1] : 1;
    auto ours = std::span(packed).subspan(static_cast<size_t>(tensor.first_row * columns), theirs.size());
    EXPECT_LE(distance_of(ours, theirs), 1e-4 * length_of(theirs)) << tensor.name;
  }
}

// Weights of a module whose layer adds nothing and whose projection takes one half of what it is given.
enum class TakenHalf { embedding, hidden };
void make_identity(FedModel& fed, const std::string& module, TakenHalf taken) {
  for (const char* path : {"attn.out.weight", "mlp.experts.down.weight", "mlp.shared.down.weight"})
    fed.fill(fmt::format("{}{}", module, path), 0);
  for (const char* path : {"enorm.weight", "hnorm.weight", "norm.weight"})
    fed.fill(fmt::format("{}{}", module, path), 1);
  int64_t hidden = fed.model.spec.hidden;
  std::vector<float> projection(static_cast<size_t>(hidden * 2 * hidden));
  for (int64_t i = 0; i < hidden; ++i)
    projection[static_cast<size_t>(i * 2 * hidden + i + (taken == TakenHalf::hidden ? hidden : 0))] = 1;
  fed.write(fmt::format("{}eh_proj.weight", module), projection);
}

// Targets so many positions further on.
std::vector<int32_t> moved_on(const std::vector<int32_t>& targets, int64_t rows, int64_t by) {
  std::vector<int32_t> moved(targets.size(), -1);
  int64_t seq = std::ssize(targets) / rows;
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(targets.begin() + row * seq + by, seq - by, moved.begin() + row * seq);
  return moved;
}

// Modules that pass on what they are given predict with the model's own logits: each depth has the model's loss for
// targets that are further on.
TEST(MultiTokenPrediction, PassingOnWhatTheModelGivesIsItsLossOfLaterTargets) {
  SafetensorsFile batch(kMtpFixture / "expected.safetensors");
  FedModel fed(batch, {.train = Optimizer{}});
  fed.fill("norm.weight", 1);
  for (const char* module : {"mtp.0.", "mtp.1."}) make_identity(fed, module, TakenHalf::hidden);
  auto run = [&] {
    fed.model.bound->run({.region = RegionKind::forward});
    fed.model.bound->run({.region = RegionKind::backward});
    return fed.losses();
  };
  std::vector<float> with_modules = run();
  std::vector<int32_t> targets = integers(batch.tensor("targets"));
  for (int64_t depth = 1; depth <= kDepths; ++depth) {
    std::vector<int32_t> later = moved_on(targets, 2, depth);
    ASSERT_EQ(counted(later), counted(integers(batch.tensor(mtp_paths(depth).targets))));
    fed.write("targets", later);
    float own = run()[0] * static_cast<float>(counted(targets)) / static_cast<float>(counted(later));
    EXPECT_NEAR(with_modules[static_cast<size_t>(depth)], own, 1e-4 * own) << depth;
    EXPECT_GT(std::abs(own - with_modules[0]), 1e-2) << "the targets moved on change nothing";
  }
}

// With the token ahead alone, and a model whose layers add nothing, the first depth at a position is the model at the
// next one.
TEST(MultiTokenPrediction, TakingTheTokenAheadIsTheModelOnePositionLater) {
  SafetensorsFile batch(kMtpFixture / "expected.safetensors");
  FedModel fed(batch, {.train = Optimizer{}});
  fed.fill("norm.weight", 1);
  make_identity(fed, "mtp.0.", TakenHalf::embedding);
  for (const char* path : {"layers.0.attn.out.weight", "layers.0.mlp.down.weight", "layers.1.attn.out.weight",
                           "layers.1.mlp.experts.down.weight", "layers.1.mlp.shared.down.weight"})
    fed.fill(path, 0);
  std::vector<int32_t> targets = integers(batch.tensor("targets"));
  int64_t seq = batch.tensor("targets").shape[1], first_counted = 0;
  for (int64_t row = 0; row < 2; ++row) {  // the first position of a sequence is nobody's next one
    int32_t& target = targets[static_cast<size_t>(row * seq)];
    first_counted += target >= 0 ? 1 : 0;
    target = -1;
  }
  EXPECT_GT(first_counted, 0);
  fed.write("targets", targets);
  fed.model.bound->run({.region = RegionKind::forward});
  fed.model.bound->run({.region = RegionKind::backward});
  const Program& program = fed.model.program;
  auto sum = [&](std::string_view path) { return read_value<float>(*fed.model.bound, program.at(path)); };
  EXPECT_NEAR(sum("mtp_loss.1"), sum("loss"), 1e-4f * sum("loss"));
}

TEST(MultiTokenPrediction, GenerationDoesWithoutIt) {
  Loaded model(kMtpFixture, {.kind = Use::Kind::generate, .cache_positions = 4}, {});
  for (const Value& value : model.program.values) EXPECT_FALSE(value.path.starts_with("mtp")) << value.path;
}

class MtpFiles : public testing::Test {
 protected:
  MtpFiles() { fs::create_directories(out_); }
  ~MtpFiles() override { fs::remove_all(out_); }

  const fs::path out_ = fs::temp_directory_path() / fmt::format("sextant-mtp-files-{}", ::getpid());
};

TEST_F(MtpFiles, AreWrittenBackByteByByteWithTheirCopies) {
  Loaded model(kMtpFixture, {.seq = 4}, {});
  save_weights(*model.bound, model.spec, out_);
  WeightsReader before(kMtpFixture), after(out_);
  EXPECT_EQ(before.names(), after.names());
  EXPECT_TRUE(after.contains("model.layers.3.shared_head.head.weight"));
  for (const std::string& name : before.names()) {
    TensorView a = before.tensor(name), b = after.tensor(name);
    EXPECT_EQ(a.shape, b.shape) << name;
    EXPECT_TRUE(std::ranges::equal(a.bytes, b.bytes)) << name;
  }
  refuse_other_copies(model.spec, before);
  EXPECT_EQ(unread_layers(model.spec, before), "");
  // Once is enough where only we read it.
  save_master_weights(*model.bound, model.spec, out_ / "master.safetensors");
  SafetensorsFile master(out_ / "master.safetensors");
  EXPECT_FALSE(master.contains("model.layers.2.embed_tokens.weight"));
  EXPECT_TRUE(master.contains("model.layers.2.eh_proj.weight"));
}

TEST_F(MtpFiles, CopiesWithOtherValuesAreRefused) {
  WeightsReader weights(kMtpFixture);
  const std::string changed = "model.layers.3.shared_head.head.weight";
  std::vector<TensorSpec> specs;
  for (const std::string& name : weights.names()) specs.push_back({name, FileDType::f32, weights.tensor(name).shape});
  {
    SafetensorsWriter writer(out_ / "model.safetensors", plan_safetensors(specs));
    for (const std::string& name : weights.names()) {
      std::vector<float> values = floats(weights.tensor(name));
      if (name == changed) values[7] += 1;
      writer.write(name, std::as_bytes(std::span(values)));
    }
    writer.finish();
  }
  ModelSpec spec = spec_from_hf_config(read_file(kMtpFixture / "config.json"), "config.json");
  try {
    refuse_other_copies(spec, WeightsReader(out_));
    FAIL() << "nothing was said";
  } catch (const UserError& error) {
    std::string said = error.what();
    EXPECT_NE(said.find(changed), std::string::npos) << said;
    EXPECT_NE(said.find("its values differ from those of lm_head.weight"), std::string::npos) << said;
  }
  spec.mtp_depths = 1;  // the module with that copy is not read
  refuse_other_copies(spec, WeightsReader(out_));
  EXPECT_NE(unread_layers(spec, WeightsReader(out_)).find("model.layers.3 and later hold"), std::string::npos);
}

// A module reads the model's embedding and head, which stay what optimizers take them for.
TEST(MultiTokenPrediction, EmbeddingAndHeadAreOfNoBlock) {
  ModelSpec spec = find_preset("deepseek-v3")->spec;
  spec.layers = 1, spec.mtp_depths = 2, spec.experts->dense_first = 0;
  Graph graph = build_model(spec, {.seq = 4}, single_rank_mesh());
  std::map<ValueId, OptimizedWeight> weights = optimized_weights(graph);
  for (const char* path : {"embed.weight", "head.weight"}) EXPECT_FALSE(weights.at(graph.find(path)->id).in_block);
  for (const char* path : {"layers.0.attn.out.weight", "mtp.0.eh_proj.weight", "mtp.1.mlp.experts.down.weight"})
    EXPECT_TRUE(weights.at(graph.find(path)->id).in_block) << path;
}

TEST(MultiTokenPrediction, CountsOfDeepSeekV3AreThePublishedOnes) {
  ModelSpec spec = find_preset("deepseek-v3")->spec;
  auto model = [&](int64_t depths) {
    spec.mtp_depths = depths;
    return build_model(spec, {.seq = 1}, single_rank_mesh());
  };
  Graph without = model(0), with = model(1);
  EXPECT_EQ(parameter_count(without), 671'026'404'352);
  EXPECT_EQ(parameter_count(with) - parameter_count(without), 11'610'067'968);
  EXPECT_EQ(active_parameters(with).all - active_parameters(without).all, 688'100'352);
  EXPECT_EQ(active_parameters(with).without_embedding - active_parameters(without).without_embedding, 688'100'352);
  int64_t in_files = 0;
  for (const HfTensor& tensor : model_of(spec).tensors(spec)) {
    const Value& value = *with.find(tensor.parameter);
    if (value.is_trained()) in_files += tensor.rows * (value.shape.rank() == 2 ? value.shape[1] : 1);
  }
  EXPECT_EQ(in_files, 684'489'830'400);
}

}  // namespace
}  // namespace sextant
