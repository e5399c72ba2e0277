// The config.json files of released models beside the presets of their names, and files that we must not read as if we
// could.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/hf_config.h"
#include "models/presets.h"

namespace sextant {
namespace {

using nlohmann::json;

// Contents of the released files, without dropout rates and settings of their training code.
const json kPythia = {{"model_type", "gpt_neox"},
                      {"hidden_act", "gelu"},
                      {"hidden_size", 512},
                      {"intermediate_size", 2048},
                      {"layer_norm_eps", 1e-5},
                      {"num_attention_heads", 8},
                      {"num_hidden_layers", 6},
                      {"rotary_emb_base", 10000},
                      {"rotary_pct", 0.25},
                      {"tie_word_embeddings", false},
                      {"use_parallel_residual", true},
                      {"vocab_size", 50304},
                      {"bos_token_id", 0},
                      {"eos_token_id", 0},
                      {"initializer_range", 0.02},
                      {"max_position_embeddings", 2048}};
const json kOpt = {{"model_type", "opt"},
                   {"activation_function", "relu"},
                   {"do_layer_norm_before", true},
                   {"ffn_dim", 3072},
                   {"hidden_size", 768},
                   {"init_std", 0.02},
                   {"num_attention_heads", 12},
                   {"num_hidden_layers", 12},
                   {"pad_token_id", 1},
                   {"bos_token_id", 2},
                   {"eos_token_id", 2},
                   {"vocab_size", 50272},
                   {"word_embed_proj_dim", 768},
                   {"max_position_embeddings", 2048},
                   {"_remove_final_layer_norm", false},
                   {"dropout", 0.1}};
const json kBloom = {{"model_type", "bloom"},
                     {"n_embed", 1024},
                     {"n_layer", 24},
                     {"num_attention_heads", 16},
                     {"layer_norm_epsilon", 1e-5},
                     {"n_inner", nullptr},
                     {"offset_alibi", 100},
                     {"slow_but_exact", false},
                     {"vocab_size", 250880},
                     {"seq_length", 2048},
                     {"bos_token_id", 1},
                     {"eos_token_id", 2},
                     {"initializer_range", 0.02},
                     {"apply_residual_connection_post_layernorm", false}};
const json kMpt = {{"model_type", "mpt"},
                   {"d_model", 4096},
                   {"n_heads", 32},
                   {"n_layers", 32},
                   {"expansion_ratio", 4},
                   {"max_seq_len", 2048},
                   {"learned_pos_emb", true},
                   {"no_bias", true},
                   {"logit_scale", nullptr},
                   {"vocab_size", 50432},
                   {"eos_token_id", 0},
                   {"norm_type", "low_precision_layernorm"},
                   {"attn_config",
                    {{"alibi", true},
                     {"alibi_bias_max", 8},
                     {"attn_type", "multihead_attention"},
                     {"clip_qkv", nullptr},
                     {"prefix_lm", false},
                     {"qk_ln", false},
                     {"softmax_scale", nullptr},
                     {"attn_uses_sequence_id", false}}}};
const json kQwen2 = {{"model_type", "qwen2"},
                     {"hidden_act", "silu"},
                     {"hidden_size", 3584},
                     {"intermediate_size", 18944},
                     {"num_attention_heads", 28},
                     {"num_hidden_layers", 28},
                     {"num_key_value_heads", 4},
                     {"max_window_layers", 28},
                     {"rms_norm_eps", 1e-6},
                     {"rope_theta", 1000000.0},
                     {"sliding_window", 131072},
                     {"use_sliding_window", false},
                     {"tie_word_embeddings", false},
                     {"vocab_size", 152064},
                     {"bos_token_id", 151643},
                     {"eos_token_id", 151643},
                     {"max_position_embeddings", 131072}};
const json kQwen3 = {{"model_type", "qwen3"},       {"attention_bias", false},      {"head_dim", 128},
                     {"hidden_size", 4096},         {"intermediate_size", 12288},   {"num_attention_heads", 32},
                     {"num_hidden_layers", 36},     {"num_key_value_heads", 8},     {"rms_norm_eps", 1e-6},
                     {"rope_scaling", nullptr},     {"rope_theta", 1000000},        {"sliding_window", nullptr},
                     {"use_sliding_window", false}, {"tie_word_embeddings", false}, {"vocab_size", 151936},
                     {"bos_token_id", 151643},      {"eos_token_id", 151643},       {"max_position_embeddings", 32768}};
const json kMistral = {{"model_type", "mistral"},    {"hidden_act", "silu"},      {"hidden_size", 4096},
                       {"intermediate_size", 14336}, {"num_attention_heads", 32}, {"num_hidden_layers", 32},
                       {"num_key_value_heads", 8},   {"rms_norm_eps", 1e-5},      {"rope_theta", 10000.0},
                       {"sliding_window", 4096},     {"vocab_size", 32000},       {"tie_word_embeddings", false},
                       {"bos_token_id", 1},          {"eos_token_id", 2},         {"max_position_embeddings", 32768}};

ModelSpec read(const json& file) {
  return spec_from_hf_config(file.dump(), "config.json");
}

std::string complaint_about(json file, const json& changes) {
  file.update(changes);
  try {
    read(file);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(HfReleased, AreThePresets) {
  EXPECT_EQ(read(kPythia), find_preset("pythia-70m")->spec);
  ModelSpec opt = read(kOpt);
  EXPECT_EQ(opt.padding_token, 1);  // a preset has none: it may be trained with another tokenizer
  opt.padding_token.reset();
  EXPECT_EQ(opt, find_preset("opt-125m")->spec);
  EXPECT_EQ(read(kBloom), find_preset("bloom-560m")->spec);
  EXPECT_EQ(read(kMpt), find_preset("mpt-7b")->spec);
  EXPECT_EQ(read(kQwen2), find_preset("qwen2.5-7b")->spec);
  EXPECT_EQ(read(kQwen3), find_preset("qwen3-8b")->spec);
  EXPECT_EQ(read(kMistral), find_preset("mistral-7b")->spec);
}

// How transformers reads the two keys: a final norm that post-norm does not have cannot be removed.
TEST(HfReleased, PlacementsOfOptsNorms) {
  auto placement = [](bool before, bool removed) {
    json file = kOpt;
    file.update({{"do_layer_norm_before", before}, {"_remove_final_layer_norm", removed}});
    return read(file).norm_placement;
  };
  EXPECT_EQ(placement(true, false), NormPlacement::pre);
  EXPECT_EQ(placement(true, true), NormPlacement::pre_without_final);
  EXPECT_EQ(placement(false, false), NormPlacement::post);
  EXPECT_EQ(placement(false, true), NormPlacement::post);
}

TEST(HfReleased, DefaultsAreThoseOfEachType) {
  json mistral = kMistral;
  mistral["sliding_window"] = nullptr;
  EXPECT_EQ(read(mistral).window, 0);
  mistral.erase("sliding_window");
  EXPECT_EQ(read(mistral).window, 4096);  // transformers takes it where a file is silent, and not where it says null
  mistral.erase("num_key_value_heads");
  EXPECT_EQ(read(mistral).kv_heads, 8);
  json neox = kPythia;
  for (const char* key : {"rotary_pct", "rotary_emb_base", "hidden_act"}) neox.erase(key);
  EXPECT_EQ(read(neox), read(kPythia));
  neox["hidden_act"] = "gelu_fast";
  EXPECT_EQ(read(neox).activation, Activation::gelu_tanh);
}

TEST(HfReleased, WhatWeDoNotComputeIsRefusedByName) {
  EXPECT_EQ(complaint_about(kPythia, {{"rotary_pct", 0.3}}),
            "config.json rotary_pct: 0.3 of head_dim 64 is 19 elements; expected an even number of them, because RoPE "
            "turns pairs");
  EXPECT_EQ(complaint_about(kOpt, {{"word_embed_proj_dim", 0}}),
            "config.json word_embed_proj_dim: got 0; expected an integer of at least 1");
  EXPECT_EQ(complaint_about(kOpt, {{"enable_bias", false}}),
            "config.json enable_bias: false is not supported; expected true");
  EXPECT_EQ(complaint_about(kBloom, {{"apply_residual_connection_post_layernorm", true}}),
            "config.json apply_residual_connection_post_layernorm: true is not supported; expected false");
  json attention = kMpt["attn_config"];
  attention.update({{"alibi", false}, {"clip_qkv", 6.0}});
  EXPECT_EQ(complaint_about(kMpt, {{"attn_config", attention}}),
            "config.json attn_config alibi: false is not supported; expected true\n"
            "config.json attn_config clip_qkv: is not supported; expected null");
  json types(kQwen2["num_hidden_layers"].get<size_t>(), "chunked_attention");
  EXPECT_EQ(complaint_about(kQwen2, {{"use_sliding_window", true}, {"layer_types", types}}),
            fmt::format("config.json layer_types: other kinds of attention; expected {} times sliding_attention or "
                        "full_attention",
                        types.size()));
}

// Windows and RoPE are written again as the directory states them.
TEST(HfReleased, OptionsSurviveTheRoundTrip) {
  auto changed = [](json file, const json& changes) {
    file.update(changes);
    return read(file);
  };
  json alternating = json::array();
  for (int layer = 0; layer < kQwen3["num_hidden_layers"]; ++layer)
    alternating.push_back(layer % 2 == 0 ? "sliding_attention" : "full_attention");
  for (const ModelSpec& spec :
       {changed(kQwen2, {{"use_sliding_window", true}, {"sliding_window", 1000}, {"max_window_layers", 5}}),
        changed(kQwen3, {{"use_sliding_window", true}, {"sliding_window", 1000}, {"layer_types", alternating}}),
        changed(kQwen3, {{"attention_bias", true}}), changed(kPythia, {{"use_parallel_residual", false}}),
        changed(kMistral, {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}}}),
        changed(kMistral, {{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}}}),
        changed(kMistral, {{"rope_scaling",
                            {{"rope_type", "yarn"}, {"factor", 2.0}, {"mscale", 0.7}, {"mscale_all_dim", 0.5}}}})}) {
    EXPECT_EQ(spec_from_hf_config(hf_config_json(spec), "again"), spec);
  }
  EXPECT_EQ(changed(kQwen2, {{"use_sliding_window", true}, {"sliding_window", 1000}, {"max_window_layers", 5}})
                .full_attention_first,
            5);
  EXPECT_EQ(changed(kQwen3, {{"use_sliding_window", true}, {"sliding_window", 1000}, {"layer_types", alternating}})
                .full_attention_every,
            2);
}

}  // namespace
}  // namespace sextant
