// Dropout stands where transformers has it, at the rates of its config.json: loss and every gradient in training mode,
// with masks that the peer computes by itself (tests/peers/dropout_peer.py).
#include <gtest/gtest.h>

#include <cstdlib>

#include "architecture_data.h"
#include "base/rng.h"
#include "checkout.h"
#include "ckpt/safetensors_writer.h"
#include "exec/dropout_mask.h"
#include "model_results.h"
#include "models/hf_type.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDropoutRows = 2, kDropoutSeq = 24, kDropoutVocab = 97;

Batch drawn_batch(const std::string& name) {
  Batch batch{.rows = kDropoutRows, .seq = kDropoutSeq, .tokens = {}, .targets = {}};
  Random random(98, name);
  for (uint64_t i = 0; i < kDropoutRows * kDropoutSeq; ++i) {
    batch.tokens.push_back(static_cast<int32_t>(random.below(i, kDropoutVocab)));
    batch.targets.push_back(i % 7 == 3 ? -100 : static_cast<int32_t>(random.below(1000 + i, kDropoutVocab)));
  }
  return batch;
}

// A copy of a fixture whose config.json has other rates, as we write it.
fs::path directory_with(const DropoutRates& rates, const std::string& name) {
  fs::path out = fs::temp_directory_path() / fmt::format("sextant-dropout-{}-{}", name, ::getpid());
  fs::remove_all(out);
  fs::copy(model_fixtures() / name, out, fs::copy_options::recursive);
  std::string base = read_file(out / "config.json");
  write_file_atomically(out / "config.json", hf_config_json(spec_from_hf_config(base, name), base, DType::f32, rates));
  return out;
}

fs::path results_file(const std::string& name, const NamedTensors& ours, const Batch& batch,
                      const BatchDropout& dropout) {
  std::vector<TensorSpec> specs{{"input_ids", FileDType::i32, {kDropoutRows, kDropoutSeq}},
                                {"targets", FileDType::i32, {kDropoutRows, kDropoutSeq}},
                                {"dropout_keys", FileDType::i64, {kDropoutRows}}};
  for (const auto& [tensor, content] : ours) specs.push_back({tensor, FileDType::f32, content.shape});
  fs::path file = fs::temp_directory_path() / fmt::format("sextant-dropout-{}-{}.safetensors", name, ::getpid());
  SafetensorsWriter writer(file, plan_safetensors(specs));
  writer.write("input_ids", std::as_bytes(std::span(batch.tokens)));
  writer.write("targets", std::as_bytes(std::span(batch.targets)));
  writer.write("dropout_keys", std::as_bytes(std::span(dropout.keys)));
  for (const auto& [tensor, content] : ours) writer.write(tensor, std::as_bytes(std::span(content.values)));
  writer.finish();
  return file;
}

// MPT's class in transformers takes integers only for its rate: no rate above 0 can be loaded.
constexpr const char* kDropoutModels[] = {"gpt2", "opt",   "opt_350m", "neox",    "neox_sequential", "bloom",
                                          "phi3", "llama", "gemma",    "mixtral", "starcoder2"};

TEST(LiveParity, TransformersLeavesOutTheSame) {
  fs::path peer = fs::path(checkout::kSources) / "build/peers/bin/python";
  if (!fs::exists(peer)) GTEST_SKIP() << "scripts/peers has not been run";
  std::string command = fmt::format("{} {}/tests/peers/dropout_peer.py", peer.string(), checkout::kSources);
  std::vector<fs::path> files;
  for (const std::string name : kDropoutModels) {
    fs::path directory = directory_with({.hidden = 0.1, .attention = 0.2, .embedding = 0.3}, name);
    Batch batch = drawn_batch(name);
    BatchDropout dropout{hf_dropout_rates(read_file(directory / "config.json"), name),
                         {dropout_key(7, 0), dropout_key(7, 1)}};
    EXPECT_TRUE(dropout.rates.any()) << name;
    NamedTensors ours = loss_and_gradients(directory, batch, 0, RecomputeMode::none, dropout);
    NamedTensors again = loss_and_gradients(directory, batch, 0, RecomputeMode::full, dropout);
    EXPECT_EQ(again.at("loss").values, ours.at("loss").values) << name;
    files.push_back(directory);
    files.push_back(results_file(name, ours, batch, dropout));
    command += fmt::format(" {} {}", directory.string(), files.back().string());
  }
  EXPECT_EQ(std::system(command.c_str()), 0);
  for (const fs::path& file : files) fs::remove_all(file);
}

}  // namespace
}  // namespace sextant
