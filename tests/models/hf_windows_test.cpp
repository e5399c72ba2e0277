// Which layers of a model have its window, as the config classes of transformers decide it: where a file has
// layer_types, and by the rule of each model type where it has not.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/hf_config.h"

namespace sextant {
namespace {

using nlohmann::json;

json config_of(const char* model_type, int layers, const json& keys) {
  json config = {{"model_type", model_type},   {"num_hidden_layers", layers},
                 {"hidden_size", 64},          {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},   {"vocab_size", 97},
                 {"intermediate_size", 128},   {"head_dim", 16},
                 {"pad_token_id", nullptr},    {"num_experts", 4},
                 {"num_local_experts", 4},     {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", 32}};
  const std::string type = model_type;
  config.erase(type == "mixtral" || type == "gpt_oss" ? "num_experts" : "num_local_experts");
  if (keys.is_object()) config.update(keys);
  return config;
}

ModelSpec read(const json& config) {
  return spec_from_hf_config(config.dump(), "config.json");
}

std::vector<int64_t> windows_of(const ModelSpec& spec) {
  std::vector<int64_t> windows;
  for (int64_t layer = 0; layer < spec.layers; ++layer) windows.push_back(window_of_layer(spec, layer));
  return windows;
}

struct Case {
  const char* model_type;
  json keys;
  std::vector<int64_t> windows;  // of each layer; 0 = full attention
};

const json kUsed = {{"use_sliding_window", true}};

json with(json keys, const json& more) {
  keys.update(more);
  return keys;
}

// config.layer_types and config.sliding_window of transformers 5.22 for these keys; tests/peers/window_variants.py
// holds the attention of such models against its classes.
const std::vector<Case> kWithoutLayerTypes = {
    {"llama", {{"sliding_window", 8}}, {0, 0, 0}},
    {"mistral", {{"sliding_window", 8}}, {8, 8, 8}},
    {"mistral", {}, {4096, 4096, 4096}},
    {"mistral", {{"sliding_window", nullptr}}, {0, 0, 0}},
    {"mixtral", {{"sliding_window", 8}}, {8, 8, 8}},
    {"mixtral", {}, {0, 0, 0}},
    {"phi3", {{"sliding_window", 8}}, {8, 8, 8}},
    {"phi3", {}, {0, 0, 0}},
    {"starcoder2", {{"sliding_window", 8}}, {8, 8, 8}},
    {"starcoder2", {}, {0, 0, 0}},
    {"gpt_oss", {{"sliding_window", 8}}, {8, 0, 8}},
    {"gpt_oss", {}, {128, 0, 128, 0}},
    {"qwen2", {{"sliding_window", 8}}, {0, 0, 0}},
    {"qwen2", with(kUsed, {{"sliding_window", 8}, {"max_window_layers", 2}}), {0, 0, 8}},
    {"qwen2", with(kUsed, {{"max_window_layers", 1}}), {0, 4096, 4096}},
    {"qwen2", with(kUsed, {{"max_window_layers", 0}}), {4096, 4096, 4096}},
    {"qwen2", kUsed, {0, 0, 0}},
    {"qwen2", with(kUsed, {{"sliding_window", nullptr}, {"max_window_layers", 1}}), {0, 0, 0}},
    {"qwen3", with(kUsed, {{"sliding_window", 8}, {"max_window_layers", 2}}), {0, 0, 8}},
    {"qwen3", kUsed, {0, 0, 0}},
    {"qwen3_moe", {{"sliding_window", 8}}, {0, 0, 0}},
    {"qwen3_moe", with(kUsed, {{"sliding_window", 8}, {"max_window_layers", 2}}), {8, 8, 8}},
    {"qwen3_moe", kUsed, {4096, 4096, 4096}},
    {"qwen3_moe", with(kUsed, {{"sliding_window", nullptr}}), {0, 0, 0}},
    {"qwen2_moe", {{"sliding_window", 8}}, {0, 0, 0}},
    {"qwen2_moe", with(kUsed, {{"sliding_window", 8}, {"max_window_layers", 2}}), {8, 0, 0}},
    {"qwen2_moe", with(kUsed, {{"sliding_window", 8}, {"max_window_layers", 3}}), {8, 0, 8, 0, 0}},
    {"qwen2_moe", with(kUsed, {{"sliding_window", 8}, {"max_window_layers", 0}}), {0, 0, 0}},
    {"qwen2_moe", kUsed, {4096, 0, 4096, 0}},
};

TEST(WindowLayers, FollowTheRuleOfTheModelType) {
  for (const auto& [model_type, keys, windows] : kWithoutLayerTypes) {
    SCOPED_TRACE(fmt::format("{} {}", model_type, keys.dump()));
    ModelSpec spec = read(config_of(model_type, static_cast<int>(windows.size()), keys));
    EXPECT_EQ(windows_of(spec), windows);
    EXPECT_EQ(windows_of(spec_from_hf_config(hf_config_json(spec), "written again")), windows);
  }
}

TEST(WindowLayers, FollowLayerTypesWhateverTheirOrder) {
  for (const char* model_type : {"qwen2", "qwen3", "qwen2_moe", "gpt_oss"})
    for (unsigned bits = 0; bits < 32; ++bits) {
      json types = json::array();
      std::vector<int64_t> windows;
      for (unsigned layer = 0; layer < 5; ++layer) {
        bool sliding = (bits >> layer & 1) != 0;
        types.push_back(sliding ? "sliding_attention" : "full_attention");
        windows.push_back(sliding ? 8 : 0);
      }
      SCOPED_TRACE(fmt::format("{} {}", model_type, types.dump()));
      ModelSpec spec = read(config_of(
          model_type, 5,
          {{"use_sliding_window", true}, {"sliding_window", 8}, {"max_window_layers", 2}, {"layer_types", types}}));
      EXPECT_EQ(windows_of(spec), windows);
      EXPECT_EQ(spec_from_hf_config(hf_config_json(spec), "written again"), spec);
    }
}

std::string complaint_about(const char* model_type, const json& keys) {
  try {
    read(config_of(model_type, 3, keys));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// transformers raises an error for these, or computes a mask through which no token sees any.
TEST(WindowLayers, WindowsOfNoWidthAreRefused) {
  const json sliding = {"sliding_attention", "full_attention", "full_attention"};
  for (const char* model_type : {"qwen2", "qwen3", "qwen2_moe"}) {
    EXPECT_EQ(complaint_about(model_type, {{"layer_types", sliding}}),
              "config.json use_sliding_window: is false, but layer_types has sliding_attention; expected true");
    EXPECT_EQ(complaint_about(model_type, with(kUsed, {{"layer_types", sliding}, {"sliding_window", nullptr}})),
              "config.json sliding_window: is null, but use_sliding_window is true; expected an integer of at least 1");
    EXPECT_EQ(complaint_about(model_type, with(kUsed, {{"layer_types", {"full_attention"}}})),
              "config.json layer_types: a list of 1 entries; expected 3 times sliding_attention or full_attention");
  }
  EXPECT_NE(complaint_about("qwen2_moe", with(kUsed, {{"sliding_window", nullptr}})), "");
  EXPECT_NE(complaint_about("gpt_oss", {{"sliding_window", nullptr}}), "");
  for (const char* model_type : {"mistral", "mixtral", "phi3", "starcoder2", "gpt_oss"})
    EXPECT_EQ(complaint_about(model_type, {{"sliding_window", 0}}).substr(0, 52),
              "config.json sliding_window: got 0: no token would se")
        << model_type;
}

}  // namespace
}  // namespace sextant
