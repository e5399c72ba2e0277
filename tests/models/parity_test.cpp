// Whole models against PyTorch's transformers: logits, loss and every parameter's gradient, tensor by tensor. The
// expected numbers were made by tests/peers/make_model_fixtures.py; with build/peers there (scripts/peers) the
// comparison also runs live.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "architecture_data.h"
#include "base/rng.h"
#include "checkout.h"
#include "ckpt/convert.h"
#include "ckpt/safetensors.h"
#include "ckpt/safetensors_writer.h"
#include "model_results.h"
#include "models/hf_type.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kFixtures = model_fixtures();
const fs::path kPeer = fs::path(checkout::kSources) / "build/peers/bin/python";

double norm(std::span<const float> x) {
  double sum = 0;
  for (float v : x) sum += static_cast<double>(v) * v;
  return std::sqrt(sum);
}

double distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
  return std::sqrt(sum);
}

struct Case {
  std::string model;     // the Hugging Face directory
  std::string expected;  // the folder with the numbers
  double z_loss = 0;
  RecomputeMode recompute = RecomputeMode::none;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.expected << ", recompute " << static_cast<int>(c.recompute);
}

std::vector<Case> cases() {
  std::vector<Case> all{{"llama", "llama_zloss", 1e-3}};
  for (const std::string& name : model_fixture_names())
    for (RecomputeMode mode : {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full})
      all.push_back({name, name, 0, mode});
  return all;
}

class Parity : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Models, Parity, testing::ValuesIn(cases()));

// Every model type that transformers knows has numbers to agree with, or is covered by its architecture's.
TEST(Fixtures, EveryArchitectureHasOne) {
  std::set<std::string> covered;
  for (const std::string& name : model_fixture_names())
    covered.insert(spec_from_hf_config(read_file(kFixtures / name / "config.json"), name).architecture);
  for (const ModelDef* def : all_models()) {
    if (def->hf_types.front().known == HfKnown::ours) continue;
    EXPECT_TRUE(covered.contains(std::string(def->name)))
        << def->name << ": add tests/fixtures/models/NAME/recipe.json and run tests/peers/make_model_fixtures.py";
  }
}

void expect_loss_and_gradients(const NamedTensors& ours, const SafetensorsFile& expected) {
  float wanted = floats(expected.tensor("loss"))[0];
  EXPECT_NEAR(ours.at("loss").values[0], wanted, 1e-5 * std::abs(wanted));
  double all = 0;
  for (const auto& [name, tensor] : ours)
    if (name.starts_with("grad.")) all += std::pow(norm(floats(expected.tensor(name))), 2);
  for (const auto& [name, tensor] : ours) {
    if (!name.starts_with("grad.")) continue;
    TensorView theirs = expected.tensor(name);
    ASSERT_EQ(tensor.shape, theirs.shape) << name;
    // A bias of keys has a gradient of exactly zero, for softmax does not see it. In GPT-2's packed bias the first
    // floor judges it; where it is a tensor of its own (OPT), it is all rounding.
    double size = norm(floats(theirs)), floor = (size < 1e-6 * std::sqrt(all) ? 1e-2 : 1e-4) * std::sqrt(all);
    EXPECT_LE(distance(tensor.values, floats(theirs)), 1e-5 * std::max(size, floor)) << name;
  }
}

TEST_P(Parity, LossAndEveryGradient) {
  SafetensorsFile expected(kFixtures / GetParam().expected / "expected.safetensors");
  expect_loss_and_gradients(loss_and_gradients(kFixtures / GetParam().model, fixture_batch(expected), GetParam().z_loss,
                                               GetParam().recompute),
                            expected);
}

TEST(Logits, AgreeWithTheCacheFilledAtOnceOrTokenByToken) {
  for (const std::string& name : model_fixture_names()) {
    SafetensorsFile expected(kFixtures / name / "expected.safetensors");
    Batch batch = fixture_batch(expected);
    std::vector<float> theirs = floats(expected.tensor("logits"));
    for (int64_t block : {batch.seq, batch.seq / 4, int64_t{1}}) {
      NamedTensor ours = cached_logits(kFixtures / name, batch, block);
      int64_t vocab = ours.shape[2];
      for (int64_t position = block - 1; position < batch.rows * batch.seq; position += block) {
        auto at = [&](const std::vector<float>& x) {
          return std::span(x).subspan(static_cast<size_t>(position * vocab), static_cast<size_t>(vocab));
        };
        EXPECT_LE(distance(at(ours.values), at(theirs)), 1e-5 * norm(at(theirs)))
            << name << " position " << position << " block " << block;
      }
    }
  }
}

// The mean losses before each of some steps on one batch.
std::vector<float> train_losses(Loaded& model, const Batch& batch, float lr, int32_t steps) {
  model.bound->write(model.program.at("tokens"), std::as_bytes(std::span(batch.tokens)));
  model.bound->write(model.program.at("targets"), std::as_bytes(std::span(batch.targets)));
  float scale = 1.0f / static_cast<float>(batch.counted());
  write_value(*model.bound, model.program.at("loss_scale"), scale);
  const Value *balance = model.program.find("balance_loss"), *balance_scale = model.program.find("balance_scale");
  if (balance_scale) write_value(*model.bound, *balance_scale, 1.0f);
  write_value(*model.bound, model.program.at("lr"), lr);
  std::vector<float> losses;
  for (int32_t step = 1; step <= steps; ++step) {
    write_value(*model.bound, model.program.at("step"), step);
    run_schedule(*model.bound);
    losses.push_back(read_value<float>(*model.bound, model.program.at("loss")) * scale);
    if (balance) losses.back() += read_value<float>(*model.bound, *balance);
  }
  return losses;
}

void expect_losses(const std::vector<float>& got, const std::vector<float>& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance * wanted[i]) << "step " << i + 1;
}

// Three steps of torch's AdamW with decay groups and clipping, from the same weights on the same batch.
TEST(AdamWParity, ThreeStepsOfTorch) {
  SafetensorsFile expected(kFixtures / "llama_adamw/expected.safetensors");
  SafetensorsFile inputs(kFixtures / "llama/expected.safetensors");
  Batch batch = fixture_batch(inputs);
  Loaded model(kFixtures / "llama", {.batch = batch.rows, .seq = batch.seq}, {.train = Optimizer{.clip = 1.0}});
  expect_losses(train_losses(model, batch, 1e-2f, 3), floats(expected.tensor("losses")), 2e-5);
  for (const HfTensor& tensor : model_of(model.spec).tensors(model.spec)) {
    std::vector<float> packed = model.read(tensor.parameter), theirs = floats(expected.tensor("param." + tensor.name));
    const Value& value = model.program.at(tensor.parameter);
    int64_t columns = value.shape.rank() == 2 ? value.shape[1] : 1;
    auto ours = std::span(packed).subspan(static_cast<size_t>(tensor.first_row * columns), theirs.size());
    // Where a gradient is almost zero, Adam's first steps turn its rounding into a step of full size; hence 1e-3.
    EXPECT_LE(distance(ours, theirs), 1e-3 * norm(theirs)) << tensor.name;
  }
}

// Twenty steps of torch's AdamW on one batch, for models whose recipe asks for them.
TEST(TrainingParity, TwentyStepsOfTorch) {
  int compared = 0;
  for (const std::string& name : model_fixture_names()) {
    SafetensorsFile expected(kFixtures / name / "expected.safetensors");
    if (!expected.contains("train_losses")) continue;
    ++compared;
    Batch batch = fixture_batch(expected);
    Loaded model(kFixtures / name, {.batch = batch.rows, .seq = batch.seq}, {.train = fixture_optimizer()});
    std::vector<float> losses = floats(expected.tensor("train_losses"));
    EXPECT_LT(losses.back(), losses.front()) << name;
    SCOPED_TRACE(name);
    expect_losses(train_losses(model, batch, kFixtureLearningRate, 20), losses, 1e-5);
  }
  EXPECT_GE(compared, 21);
}

TEST(RoundTrip, TensorsAreByteIdentical) {
  for (const std::string& name : model_fixture_names()) {
    Loaded model(kFixtures / name, {.kind = Use::Kind::generate, .cache_positions = 4}, {});
    fs::path out = fs::temp_directory_path() / fmt::format("sextant-round-trip-{}-{}", name, ::getpid());
    fs::create_directories(out);
    save_weights(*model.bound, model.spec, out);
    std::set<std::string> shifted;
    for (const HfTensor& tensor : model_of(model.spec).tensors(model.spec))
      if (tensor.file_less != 0) shifted.insert(tensor.name);
    WeightsReader before(kFixtures / name), after(out);
    EXPECT_EQ(before.names(), after.names());
    for (const std::string& tensor : before.names()) {
      TensorView a = before.tensor(tensor), b = after.tensor(tensor);
      EXPECT_EQ(a.shape, b.shape);
      // Where files hold the weights of norms less 1, that takes a few bits off and on again.
      if (shifted.contains(tensor))
        EXPECT_LE(distance(floats(a), floats(b)), 1e-6 * norm(floats(a))) << tensor;
      else
        EXPECT_TRUE(std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end()))
            << name << " " << tensor;
    }
    fs::remove_all(out);
  }
}

// A directory in a 16-bit type is loaded into f32, and saved in the type that each tensor had.
TEST(RoundTrip, SixteenBitTensorsAreByteIdentical) {
  for (FileDType dtype : {FileDType::bf16, FileDType::f16}) {
    fs::path first = fs::temp_directory_path() / fmt::format("sextant-16-{}", ::getpid()),
             second = first.string() + "-again";
    fs::create_directories(first);
    fs::create_directories(second);
    Use use{.kind = Use::Kind::generate, .cache_positions = 4};
    Loaded model(kFixtures / "gpt2", use, {});
    save_weights(*model.bound, model.spec, first, {.dtype_of = [&](std::string_view) { return dtype; }});
    fs::copy_file(kFixtures / "gpt2" / "config.json", first / "config.json");
    Loaded again(first, use, {});
    WeightsReader before(first);
    save_weights(*again.bound, again.spec, second,
                 {.dtype_of = [&](std::string_view name) { return before.tensor(name).dtype; }});
    WeightsReader after(second);
    EXPECT_EQ(before.names(), after.names());
    for (const std::string& tensor : before.names()) {
      EXPECT_EQ(after.tensor(tensor).dtype, dtype);
      EXPECT_TRUE(std::ranges::equal(before.tensor(tensor).bytes, after.tensor(tensor).bytes)) << tensor;
    }
    fs::remove_all(first);
    fs::remove_all(second);
  }
}

// Fresh tokens and what we make of them, in a file for the peer.
fs::path write_live_results(const std::string& name) {
  Batch batch{.rows = 2, .seq = 24, .tokens = {}, .targets = {}};
  Random random(99, name);
  for (uint64_t i = 0; i < 48; ++i) {
    batch.tokens.push_back(static_cast<int32_t>(random.below(i, 97)));
    batch.targets.push_back(i % 7 == 3 ? -100 : static_cast<int32_t>(random.below(1000 + i, 97)));
  }
  NamedTensors ours = loss_and_gradients(kFixtures / name, batch, 0, RecomputeMode::none);
  ours["logits"] = cached_logits(kFixtures / name, batch, 1);
  std::vector<TensorSpec> specs{{"input_ids", FileDType::i32, {2, 24}}, {"targets", FileDType::i32, {2, 24}}};
  for (const auto& [tensor, content] : ours) specs.push_back({tensor, FileDType::f32, content.shape});
  fs::path file = fs::temp_directory_path() / fmt::format("sextant-live-{}-{}.safetensors", name, ::getpid());
  SafetensorsWriter writer(file, plan_safetensors(specs));
  writer.write("input_ids", std::as_bytes(std::span(batch.tokens)));
  writer.write("targets", std::as_bytes(std::span(batch.targets)));
  for (const auto& [tensor, content] : ours) writer.write(tensor, std::as_bytes(std::span(content.values)));
  writer.finish();
  return file;
}

// The model as we export it.
fs::path write_directory(const std::string& name) {
  Loaded model(kFixtures / name, {.kind = Use::Kind::generate, .cache_positions = 4}, {});
  fs::path out = fs::temp_directory_path() / fmt::format("sextant-live-{}-{}", name, ::getpid());
  fs::create_directories(out);
  save_weights(*model.bound, model.spec, out);
  write_file_atomically(out / "config.json", hf_config_json(model.spec));
  return out;
}

// Tokens generated one after the other by a model that was saved and loaded again, beside those of transformers.
TEST(Greedy, TokensAreThoseOfTransformers) {
  for (const std::string& name : model_fixture_names()) {
    auto expected = nlohmann::json::parse(read_file(kFixtures / name / "greedy.json"));
    auto text = expected["prompt"].get<std::vector<int32_t>>(), wanted = expected["tokens"].get<std::vector<int32_t>>();
    ASSERT_GE(wanted.size(), 12u) << name;
    auto positions = static_cast<int64_t>(text.size() + wanted.size());
    fs::path directory = write_directory(name);
    Loaded model(directory, {.kind = Use::Kind::generate, .batch = 1, .seq = 1, .cache_positions = positions}, {});
    std::vector<int32_t> made;
    for (size_t at = 0; made.size() < wanted.size(); ++at) {
      write_value(*model.bound, model.program.at("tokens"), text[at]);
      write_value(*model.bound, model.program.at("start"), static_cast<int32_t>(at));
      write_value(*model.bound, model.program.at("at"), int32_t{0});
      run_schedule(*model.bound);
      if (at + 1 < text.size()) continue;
      std::vector<float> logits = model.read("logits");
      made.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
      text.push_back(made.back());
    }
    EXPECT_EQ(made, wanted) << name;
    fs::remove_all(directory);
  }
}

// Judged by transformers itself.
TEST(LiveParity, TransformersAgreesOnFreshTokens) {
  if (!fs::exists(kPeer)) GTEST_SKIP() << "scripts/peers has not been run";
  std::string command = fmt::format("{} {}/tests/peers/model_peer.py compare", kPeer.string(), checkout::kSources);
  std::vector<fs::path> files;
  for (const std::string& name : model_fixture_names()) {
    files.push_back(write_directory(name));
    files.push_back(write_live_results(name));
    command += fmt::format(" {} {}", files[files.size() - 2].string(), files.back().string());
  }
  EXPECT_EQ(std::system(command.c_str()), 0);
  for (const fs::path& file : files) fs::remove_all(file);
}

// The directories that a script of tests/peers writes, and what transformers makes of them, against ours.
void compare_variants(std::string_view script, int least) {
  fs::path out = fs::temp_directory_path() / fmt::format("sextant-variants-{}", ::getpid());
  std::string path = fmt::format("{}/tests/peers/{}", checkout::kSources, script);
  ASSERT_EQ(std::system(fmt::format("{} {} {}", kPeer.string(), path, out.string()).c_str()), 0);
  int compared = 0;
  for (const auto& entry : fs::directory_iterator(out)) {
    SCOPED_TRACE(entry.path().filename().string());
    SafetensorsFile expected(entry.path() / "expected.safetensors");
    Batch batch = fixture_batch(expected);
    expect_loss_and_gradients(loss_and_gradients(entry.path(), batch, 0, RecomputeMode::none), expected);
    std::vector<float> logits = floats(expected.tensor("logits"));
    EXPECT_LE(distance(cached_logits(entry.path(), batch, 1).values, logits), 1e-5 * norm(logits));
    ++compared;
  }
  EXPECT_GE(compared, least);
  fs::remove_all(out);
}

// Models with experts at the edges of their configs, as transformers writes them.
TEST(LiveParity, ExpertVariants) {
  if (!fs::exists(kPeer)) GTEST_SKIP() << "scripts/peers has not been run";
  compare_variants("expert_variants.py", 50);
}

// Models with windows whose config.json leaves open which layers have them.
TEST(LiveParity, WindowVariants) {
  if (!fs::exists(kPeer)) GTEST_SKIP() << "scripts/peers has not been run";
  compare_variants("window_variants.py", 8);
}

}  // namespace
}  // namespace sextant
