// Settings that a config.json may state in two ways, settings that it leaves to defaults of transformers, and settings
// that are kept when we write it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/hf_config.h"
#include "models/hf_type.h"
#include "models/presets.h"

namespace sextant {
namespace {

using nlohmann::json;

const json kBloom = {{"model_type", "bloom"}, {"hidden_size", 64}, {"n_layer", 2}, {"n_head", 8}, {"vocab_size", 97}};
const json kGpt2 = {{"model_type", "gpt2"}, {"n_embd", 64}, {"n_layer", 2}, {"n_head", 4}, {"vocab_size", 97}};
const json kMpt = {{"model_type", "mpt"}, {"d_model", 64}, {"n_layers", 2}, {"n_heads", 4}, {"vocab_size", 97}};
const json kLlama = {{"model_type", "llama"},    {"hidden_size", 64},        {"num_hidden_layers", 2},
                     {"num_attention_heads", 4}, {"intermediate_size", 128}, {"vocab_size", 97}};
const json kScaling = {{"rope_type", "llama3"},
                       {"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 1024}};

json with(json file, const json& changes) {
  file.update(changes);
  return file;
}

ModelSpec read(const json& file) {
  return spec_from_hf_config(file.dump(), "config.json");
}

std::string complaint_about(const json& file) {
  try {
    read(file);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(HfTwoWays, NamesOfOneSettingMustAgree) {
  EXPECT_EQ(complaint_about(with(kBloom, {{"num_attention_heads", 4}})),
            "config.json num_attention_heads: 4, but n_head is 8; expected the same value for both names");
  EXPECT_EQ(complaint_about(with(kBloom, {{"n_embed", 128}})),
            "config.json n_embed: 128, but hidden_size is 64; expected the same value for both names");
  EXPECT_EQ(complaint_about(with(kGpt2, {{"max_position_embeddings", 32}, {"n_positions", 64}})),
            "config.json max_position_embeddings: 32, but n_positions is 64; expected the same value for both names");
  EXPECT_EQ(complaint_about(with(kMpt, {{"num_hidden_layers", 3}})),
            "config.json num_hidden_layers: 3, but n_layers is 2; expected the same value for both names");
  for (const json& file : {kBloom, kGpt2, kMpt}) {
    // Both names with one value, and the other name alone.
    json both = file, other = file;
    for (const HfAlias& alias : find_hf_type(file["model_type"].get<std::string>())->aliases) {
      std::string key(alias.key);
      if (!file.contains(key)) continue;
      both[std::string(alias.other)] = file[key];
      other[std::string(alias.other)] = file[key];
      other.erase(key);
    }
    EXPECT_EQ(read(both), read(file)) << both;
    EXPECT_EQ(read(other), read(file)) << other;
  }
}

TEST(HfTwoWays, RopeParametersAndRopeScalingMustAgree) {
  json parameters = with(kScaling, {{"rope_theta", 5e5}});
  json file = with(kLlama, {{"rope_theta", 5e5}, {"rope_scaling", kScaling}});
  ModelSpec expected = read(file);
  file["rope_parameters"] = parameters;
  EXPECT_EQ(read(file), expected);
  file["rope_parameters"]["factor"] = 4.0;
  EXPECT_NE(complaint_about(file).find("config.json rope_scaling: "), std::string::npos) << complaint_about(file);
  EXPECT_NE(complaint_about(file).find(" differs from rope_parameters "), std::string::npos) << complaint_about(file);
  file["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 5e5}};
  EXPECT_NE(complaint_about(file).find(" differs from rope_parameters "), std::string::npos) << complaint_about(file);
  file["rope_parameters"] = json::object();
  EXPECT_EQ(read(file), expected);
  EXPECT_EQ(
      complaint_about(with(kLlama, {{"rope_theta", 1e4}, {"rope_parameters", parameters}})),
      "config.json rope_theta: 10000, but config.json rope_parameters rope_theta is 500000; expected the same value "
      "for both names");
  EXPECT_EQ(complaint_about(with(kLlama, {{"rope_parameters", {{"full_attention", parameters}}}})),
            "config.json rope_parameters full_attention: is not supported; expected a number or a string");
  json neox = {{"model_type", "gpt_neox"}, {"hidden_size", 64}, {"num_hidden_layers", 2}, {"num_attention_heads", 4},
               {"intermediate_size", 128}, {"vocab_size", 97},  {"rotary_pct", 0.5}};
  EXPECT_EQ(read(with(neox, {{"rope_parameters", {{"partial_rotary_factor", 0.5}}}})), read(neox));
  EXPECT_EQ(
      complaint_about(with(neox, {{"rope_parameters", {{"partial_rotary_factor", 0.25}}}})),
      "config.json rotary_pct: 0.5, but config.json rope_parameters partial_rotary_factor is 0.25; expected the same "
      "value for both names");
}

DropoutRates rates(const json& file) {
  return hf_dropout_rates(file.dump(), "config.json");
}

std::string complaint_about_rates(const json& file) {
  try {
    rates(file);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(HfTwoWays, DropoutRatesAreThoseOfTransformers) {
  using Rates = DropoutRates;
  EXPECT_EQ(rates(kGpt2), (Rates{.hidden = 0.1, .attention = 0.1, .embedding = 0.1}));
  EXPECT_EQ(rates(with(kGpt2, {{"attn_pdrop", 0.0}, {"embd_pdrop", 0.3}, {"resid_pdrop", 0.2}})),
            (Rates{.hidden = 0.2, .embedding = 0.3}));
  EXPECT_EQ(rates(with(kMpt, {{"resid_pdrop", 0.5}, {"emb_pdrop", 0.5}})), Rates{});  // which its class does not use
  EXPECT_EQ(rates(kLlama), Rates{});
  EXPECT_EQ(rates(with(kLlama, {{"attention_dropout", 0.05}})), Rates{.attention = 0.05});
  EXPECT_EQ(rates({{"model_type", "opt"}}), Rates{.hidden = 0.1});
  EXPECT_EQ(rates({{"model_type", "gpt_neox"}, {"hidden_dropout", 0.2}}), (Rates{.hidden = 0.2, .embedding = 0.2}));
  EXPECT_EQ(rates(with(kBloom, {{"hidden_dropout", 0.2}, {"attention_dropout", 0.1}})),
            (Rates{.hidden = 0.2, .attention = 0.1}));
  EXPECT_EQ(rates({{"model_type", "starcoder2"}, {"residual_dropout", 0.1}, {"embedding_dropout", 0.2}}),
            (Rates{.hidden = 0.1, .embedding = 0.2}));
  EXPECT_EQ(rates({{"model_type", "phi3"}, {"resid_pdrop", 0.1}, {"embd_pdrop", 0.2}}), Rates{.hidden = 0.1});
  for (const Preset& preset : presets())
    EXPECT_FALSE(hf_dropout_rates(hf_config_json(preset.spec), "x").any()) << preset.name;
}

TEST(HfTwoWays, DropoutRatesThatAreNoneAreRefused) {
  EXPECT_EQ(complaint_about_rates(with(kLlama, {{"attention_dropout", "much"}})),
            "config.json attention_dropout: got \"much\"; expected a number");
  EXPECT_EQ(complaint_about_rates(with(kGpt2, {{"attn_pdrop", 1.0}, {"resid_pdrop", -0.1}})),
            "config.json attn_pdrop: got 1; expected a dropout rate, from 0 to below 1\n"
            "config.json resid_pdrop: got -0.1; expected a dropout rate, from 0 to below 1");
  EXPECT_EQ(
      complaint_about_rates(with(kMpt, {{"attn_config", {{"attn_pdrop", 0.3}}}})),
      "config.json attn_config attn_pdrop: 0.3 is not supported; expected 0, or rates of your own (model.dropout=0 "
      "trains without dropout)");
  EXPECT_EQ(complaint_about_rates({{"model_type", "opt"}, {"layerdrop", 0.2}}),
            "config.json layerdrop: 0.2 is not supported; expected 0, or rates of your own (model.dropout=0 trains "
            "without dropout)");
}

// The rates of training are in what is written, as far as the type has keys for them.
TEST(HfTwoWays, DropoutRatesSurviveTheRoundTrip) {
  const DropoutRates all{.hidden = 0.1, .attention = 0.2, .embedding = 0.3};
  auto again = [&](const json& file, const DropoutRates& given) {
    return hf_dropout_rates(hf_config_json(read(file), file.dump(), DType::f32, given), "x");
  };
  EXPECT_EQ(again(kGpt2, all), all);
  EXPECT_EQ(again(kLlama, all), DropoutRates{.attention = 0.2});
  EXPECT_EQ(again(kBloom, all), (DropoutRates{.hidden = 0.1, .attention = 0.2}));
  EXPECT_EQ(again(kMpt, all), DropoutRates{});
  for (const json& file : {kGpt2, kLlama, kBloom, kMpt}) EXPECT_EQ(again(file, {}), DropoutRates{});
}

TEST(HfTwoWays, PaddingTokenIsThatOfTransformers) {
  EXPECT_EQ(read(kLlama).padding_token, std::nullopt);
  EXPECT_EQ(read(with(kLlama, {{"pad_token_id", nullptr}})).padding_token, std::nullopt);
  EXPECT_EQ(read(with(kLlama, {{"pad_token_id", 5}})).padding_token, 5);
  EXPECT_EQ(read(with(kLlama, {{"pad_token_id", -1}})).padding_token, 96);  // an index from the end, as in Python
  EXPECT_EQ(read(with(kGpt2, {{"pad_token_id", 5}})).padding_token, std::nullopt);
  EXPECT_EQ(complaint_about(with(kLlama, {{"pad_token_id", 97}})),
            "config.json pad_token_id: got 97; expected an id below vocab_size 97");
  EXPECT_NE(complaint_about(with(kLlama, {{"pad_token_id", 18446744073709551615u}})), "");
  EXPECT_NE(complaint_about(with(kLlama, {{"pad_token_id", "x"}})), "");
  json opt = {{"model_type", "opt"},      {"hidden_size", 64}, {"num_hidden_layers", 2},
              {"num_attention_heads", 4}, {"ffn_dim", 128},    {"vocab_size", 97}};
  EXPECT_EQ(read(opt).padding_token, 1);
  EXPECT_EQ(read(with(opt, {{"pad_token_id", nullptr}})).padding_token, std::nullopt);
  for (const json& file : {opt, with(opt, {{"pad_token_id", nullptr}}), with(kLlama, {{"pad_token_id", 7}})}) {
    EXPECT_EQ(spec_from_hf_config(hf_config_json(read(file)), "x"), read(file));
    EXPECT_EQ(spec_from_hf_config(hf_config_json(read(file), file.dump()), "x"), read(file));
  }
}

TEST(HfTwoWays, MistralStaysMistral) {
  json mistral = with(kLlama, {{"model_type", "mistral"},
                               {"num_key_value_heads", 2},
                               {"sliding_window", nullptr},
                               {"architectures", {"MistralForCausalLM"}}});
  for (const json& window : {json(), json(4096)}) {
    mistral["sliding_window"] = window;
    json written = json::parse(hf_config_json(read(mistral)));
    EXPECT_EQ(written["model_type"], "mistral");
    EXPECT_EQ(written["architectures"], json({"MistralForCausalLM"}));
    EXPECT_EQ(written["sliding_window"], window);
    EXPECT_EQ(read(written), read(mistral));
  }
  EXPECT_EQ(json::parse(hf_config_json(find_preset("mistral-7b-v0.3")->spec))["model_type"], "mistral");
}

TEST(HfTwoWays, WritingKeepsWhatTheSpecDoesNotSay) {
  json base = with(kBloom, {{"num_attention_heads", 8},
                            {"transformers_version", "4.40"},
                            {"pretraining_tp", 4},
                            {"custom", {{"a", 1}}},
                            {"dtype", "bfloat16"},
                            {"use_cache", false},
                            {"pad_token_id", 3},
                            {"hidden_dropout", 0.1}});
  json written = json::parse(hf_config_json(read(base), base.dump()));
  for (const char* key : {"transformers_version", "pretraining_tp", "custom", "use_cache", "pad_token_id", "n_head"})
    EXPECT_EQ(written[key], base[key]) << key;
  EXPECT_EQ(written["dtype"], "float32");  // what the tensors beside it are
  EXPECT_FALSE(written.contains("torch_dtype"));
  EXPECT_EQ(written["hidden_dropout"], 0.0);
  EXPECT_FALSE(written.contains("num_attention_heads"));  // one name is enough
  EXPECT_FALSE(written.contains("bos_token_id"));

  // The spec decides where the two differ.
  json llama =
      with(kLlama, {{"rope_parameters", {{"rope_theta", 5e5}, {"rope_type", "default"}}}, {"eos_token_id", 2}});
  ModelSpec spec = read(llama);
  spec.max_seq = 333;
  spec.rope_theta = 1e6;
  spec.tied_head = true;
  spec.eos_tokens = {5, 6};
  EXPECT_EQ(spec_from_hf_config(hf_config_json(spec, llama.dump()), "x"), spec);
}

TEST(HfTwoWays, EndsOfAGenerationConfig) {
  EXPECT_EQ(eos_in_generation_config(R"({"eos_token_id": [3, 4]})", "x"), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(eos_in_generation_config(R"({"eos_token_id": 3})", "x"), (std::vector<int64_t>{3}));
  EXPECT_TRUE(eos_in_generation_config(R"({"eos_token_id": null})", "x").empty());
  EXPECT_THROW(eos_in_generation_config(R"({"eos_token_id": "a"})", "x"), UserError);
  EXPECT_THROW(eos_in_generation_config("[", "x"), UserError);
}

}  // namespace
}  // namespace sextant
