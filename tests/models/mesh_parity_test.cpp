// Every architecture on meshes, and with every fusion that a target may ask for, against one rank without: the losses
// of three steps, of which the last two know every gradient. Variants of models are held to twenty steps of torch.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <mutex>

#include "architecture_data.h"
#include "ckpt/slices.h"
#include "comm/run_ranks.h"
#include "model_results.h"
#include "models/hf_type.h"
#include "passes/fuse.h"
#include "schedule/pipeline.h"
#include "targets/cpu/cpu_target.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kFixtures = model_fixtures();

struct MeshSetting {
  const char* name;
  int dp = 1, cp = 1, tp = 1;
  Parallel parallel = {};
  RecomputeMode recompute = RecomputeMode::none;
  enum class Fusions { none, all } fusions = Fusions::none;
  bool for_variants = false;
  int pp = 1;
};

const MeshSetting kOneRank{"one"};
const MeshSetting kSettings[] = {
    {"fused", 1, 1, 1, {}, RecomputeMode::none, MeshSetting::Fusions::all},
    {"fused_selective", 1, 1, 1, {}, RecomputeMode::selective, MeshSetting::Fusions::all},
    {"fused_tp2", 1, 1, 2, {}, RecomputeMode::full, MeshSetting::Fusions::all, true},
    {"tp2", 1, 1, 2},
    {"tp2_sp", 1, 1, 2, {.sequence = true}},
    {"tp4", 1, 1, 4},
    {"tp4_sp", 1, 1, 4, {.sequence = true}},
    {"cp2_ring", 1, 2, 1},
    {"cp2_ulysses", 1, 2, 1, {.context = ContextMode::ulysses}, RecomputeMode::none, MeshSetting::Fusions::none, true},
    {"cp2_tp2", 1, 2, 2, {}, RecomputeMode::none, MeshSetting::Fusions::none, true},
    {"pp2", 1, 1, 1, {}, RecomputeMode::none, MeshSetting::Fusions::none, true, 2},
    {"zero3_dp2_tp2_sp",
     2,
     1,
     2,
     {.sequence = true, .zero = 3},
     RecomputeMode::none,
     MeshSetting::Fusions::none,
     true}};

// Batch and optimizer settings that determine the losses.
struct TrainingCase {
  Batch batch;
  Optimizer optimizer;
  float lr = 0;
  int32_t steps = 0;
};

TrainingCase three_steps() {
  TrainingCase training{.batch = {.rows = 2, .seq = 24, .tokens = {}, .targets = {}},
                        .optimizer = {.settings = {.eps = 1e-3}},
                        .lr = 1e-2f,
                        .steps = 3};
  for (int32_t at = 0; at < 48; ++at) {
    training.batch.tokens.push_back((at * 37 + 3) % 97);
    training.batch.targets.push_back((at * 37 + 11) % 97);
  }
  return training;
}

// A pipeline stage has what it uses.
const Value* held_value(const Bound& bound, std::string_view path) {
  const Value* value = bound.program().find(path);
  return value && value->buffer >= 0 ? value : nullptr;
}

void write_part(Bound& bound, std::string_view path, int64_t seq, const std::vector<int32_t>& whole) {
  const Value* value = held_value(bound, path);
  if (!value) return;
  std::vector<int32_t> part(static_cast<size_t>(value->local.count()));
  for (const Piece& piece : held_pieces(bound, *value))
    for (int64_t r = 0; r < piece.rows; ++r)
      for (int64_t c = 0; c < piece.columns; ++c)
        part[static_cast<size_t>(piece.at + r * piece.stride + c)] =
            whole[static_cast<size_t>((piece.row + r) * seq + piece.column + c)];
  bound.write(*value, std::as_bytes(std::span(part)));
}

template <class T>
void write_if_held(Bound& bound, std::string_view path, const T& x) {
  if (const Value* value = held_value(bound, path)) write_value(bound, *value, x);
}

// Whether this rank's number is one of those that add up to the loss under that path.
bool counts(const Bound& bound, std::string_view path) {
  const Value* loss = held_value(bound, path);
  if (!loss) return false;
  const Mesh& mesh = bound.program().mesh;
  Coordinate at = coordinate_of(mesh, bound.rank());
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    bool same_elsewhere = loss->layout.at(axis) != kPartial && mesh.role(axis) != AxisRole::pipeline;
    if (same_elsewhere && at[static_cast<size_t>(axis)] != 0) return false;
  }
  return true;
}

std::vector<double> losses_of(const ModelSpec& spec, const fs::path& weights, const MeshSetting& setting,
                              const TrainingCase& training = three_steps()) {
  Mesh mesh{{{"pp", setting.pp}, {"dp", setting.dp}, {"cp", setting.cp}, {"tp", setting.tp}}};
  int ranks = mesh.world_size();
  LowerOptions options{.train = training.optimizer};
  if (setting.pp > 1) options.pipeline = make_schedule("1f1b", {.ranks = setting.pp, .chunks = 1, .microbatches = 1});
  options.plan.zero = setting.parallel.zero;
  options.plan.recompute = setting.recompute;
  Target target = cpu_target(1);
  if (setting.fusions == MeshSetting::Fusions::all) target.fusions.assign(fusion_names().begin(), fusion_names().end());
  const Batch& batch = training.batch;
  const std::vector<Program> stages = lower_all(
      build_model(spec, {.batch = batch.rows, .seq = batch.seq, .parallel = setting.parallel}, mesh), target, options);
  const auto counted = static_cast<double>(batch.counted());
  std::vector<double> losses(static_cast<size_t>(training.steps));
  std::mutex adding;
  ThreadHub hub(ranks, std::chrono::seconds(20));
  std::vector<RankEnd> ends = run_ranks(hub, ranks, [&](Transport& transport) {
    const Program& program = stages[static_cast<size_t>(coordinate_of(mesh, transport.rank())[0])];
    auto executor = make_cpu_executor(1, {transport.rank(), ranks == 1 ? nullptr : &transport});
    auto arena = executor->allocate(program.arena_bytes);
    auto bound = executor->bind(program, *arena);
    if (weights.empty())
      initialize_weights(*bound, 5);
    else
      load_weights(*bound, spec, WeightsReader(weights));
    write_part(*bound, "tokens", batch.seq, batch.tokens);
    write_part(*bound, "targets", batch.seq, batch.targets);
    write_if_held(*bound, "loss_scale", static_cast<float>(1 / counted));
    write_if_held(*bound, "balance_scale", 1.0f);
    write_if_held(*bound, "lr", training.lr);
    for (int32_t step = 1; step <= training.steps; ++step) {
      write_if_held(*bound, "step", step);
      run_schedule(*bound);
      std::lock_guard lock(adding);
      if (counts(*bound, "balance_loss"))
        losses[static_cast<size_t>(step - 1)] +=
            static_cast<double>(read_value<float>(*bound, program.at("balance_loss")));
      if (!counts(*bound, "loss")) continue;
      losses[static_cast<size_t>(step - 1)] +=
          static_cast<double>(read_value<float>(*bound, program.at("loss"))) / counted;
    }
  });
  for (const RankEnd& end : ends)
    if (!end.error.empty() && !end.is_echo) ADD_FAILURE() << setting.name << ": " << end.error;
  return losses;
}

class MeshParity : public testing::TestWithParam<std::string> {};

// Small models by name: the fixtures of architectures that transformers has, and fresh weights for the others.
std::vector<std::string> models_by_name() {
  std::vector<std::string> names = model_fixture_names();
  for (const ModelDef* def : all_models())
    if (def->hf_types.front().known == HfKnown::ours) names.emplace_back(def->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, MeshParity, testing::ValuesIn(models_by_name()),
                         [](const auto& info) { return info.param; });

TEST_P(MeshParity, LossesAreThoseOfOneRank) {
  fs::path weights = kFixtures / GetParam();
  ModelSpec spec;
  if (fs::exists(weights)) {
    spec = spec_from_hf_config(read_file(weights / "config.json"), "config.json");
  } else {
    weights.clear();
    spec = find_model(GetParam())->defaults;
    spec.architecture = GetParam();
    spec.layers = 2, spec.hidden = 48, spec.heads = 4, spec.head_dim = 16, spec.ffn = 80, spec.vocab = 97;
    spec.max_seq = 64, spec.init_std = 0.2;
    if (spec.kv_heads == 0) spec.kv_heads = spec.heads;
  }
  // "llama_yarn" is llama but for a detail, which some layouts try.
  bool is_variant = GetParam().find('_') != std::string::npos;
  TrainingCase training = three_steps();
  std::vector<double> expected;
  if (is_variant) {
    SafetensorsFile of_torch(weights / "expected.safetensors");
    std::vector<float> losses = floats(of_torch.tensor("train_losses"));
    expected.assign(losses.begin(), losses.end());
    training = {fixture_batch(of_torch), fixture_optimizer(), kFixtureLearningRate,
                static_cast<int32_t>(losses.size())};
  } else {
    expected = losses_of(spec, weights, kOneRank);
  }
  EXPECT_LT(expected.back(), expected.front());
  for (const MeshSetting& setting : kSettings) {
    int heads = setting.tp * (setting.parallel.context == ContextMode::ulysses ? setting.cp : 1);
    if (spec.heads % heads != 0 || (is_variant && !setting.for_variants)) continue;
    std::vector<double> got = losses_of(spec, weights, setting, training);
    for (size_t step = 0; step < expected.size(); ++step)
      EXPECT_NEAR(got[step], expected[step], 2e-5 * expected[step]) << setting.name << " step " << step;
  }
}

TEST(MeshParityOfPadding, LossesAreThoseOfOneRank) {
  fs::path weights = kFixtures / "llama3";  // its head is tied
  ModelSpec spec = spec_from_hf_config(read_file(weights / "config.json"), "config.json");
  double plain = losses_of(spec, weights, kOneRank)[2];
  spec.padding_token = 40;
  std::vector<double> expected = losses_of(spec, weights, kOneRank);
  EXPECT_GT(std::abs(expected[2] - plain), 1e-4 * plain);
  for (const MeshSetting& setting :
       {MeshSetting{"dp2_tp2", 2, 1, 2}, MeshSetting{"zero3_dp2_tp2_sp", 2, 1, 2, {.sequence = true, .zero = 3}}}) {
    std::vector<double> got = losses_of(spec, weights, setting);
    for (size_t step = 0; step < 3; ++step)
      EXPECT_NEAR(got[step], expected[step], 2e-5 * expected[step]) << setting.name << " step " << step;
  }
}

}  // namespace
}  // namespace sextant
