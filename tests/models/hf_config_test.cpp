#include "models/hf_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "architecture_data.h"
#include "base/error.h"
#include "base/files.h"
#include "models/hf_type.h"
#include "models/models.h"
#include "models/presets.h"

namespace sextant {
namespace {

using nlohmann::json;

// The values of the files as they were released.
const char* const kGpt2 = R"({
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
  "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
  "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
  "resid_pdrop": 0.1, "vocab_size": 50257})";

const char* const kLlama32 = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000,
  "eos_token_id": 128001, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
  "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
  "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8, "pretraining_tp": 1,
  "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
  "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                   "original_max_position_embeddings": 8192, "rope_type": "llama3"},
  "use_cache": true, "vocab_size": 128256})";

const char* const kLlama1 = R"({
  "architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
  "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 11008, "max_position_embeddings": 2048,
  "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "pad_token_id": 0,
  "rms_norm_eps": 1e-06, "tie_word_embeddings": false, "vocab_size": 32000})";

std::string all_types() {
  std::string types;
  for (const ModelDef* def : all_models())
    for (const HfType& type : def->hf_types) types += fmt::format("{}{}", types.empty() ? "" : ", ", type.model_type);
  return "one of " + types;
}

ModelSpec read(const json& document) {
  return spec_from_hf_config(document.dump(), "config.json");
}

std::string complaint_about(const std::string& text) {
  try {
    spec_from_hf_config(text, "config.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string complaint_about(const char* base, const json& changes) {
  json document = json::parse(base);
  document.update(changes);
  return complaint_about(document.dump());
}

TEST(HfConfig, ReleasedFilesAreThePresets) {
  EXPECT_EQ(spec_from_hf_config(kGpt2, "x"), find_preset("gpt2")->spec);
  EXPECT_EQ(spec_from_hf_config(kLlama32, "x"), find_preset("llama3.2-1b")->spec);
  ModelSpec llama1 = spec_from_hf_config(kLlama1, "x");
  EXPECT_EQ(llama1.padding_token, 0);  // a preset has none: it may be trained with another tokenizer
  llama1.padding_token.reset();
  EXPECT_EQ(llama1, find_preset("llama-7b")->spec);
}

TEST(HfConfig, RopeMayBeWrittenInThreeWays) {
  const ModelSpec expected = find_preset("llama3.2-1b")->spec;
  json document = json::parse(kLlama32);
  json scaling = document["rope_scaling"];

  scaling["type"] = scaling["rope_type"];
  scaling.erase("rope_type");
  document["rope_scaling"] = scaling;
  EXPECT_EQ(read(document), expected);

  document.erase("rope_scaling");
  document.erase("rope_theta");
  scaling["rope_theta"] = 500000.0;
  document["rope_parameters"] = scaling;
  EXPECT_EQ(read(document), expected);

  document["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 7}};
  EXPECT_EQ(read(document).rope_scaling, std::nullopt);
  EXPECT_EQ(read(document).rope_theta, 7);
}

TEST(HfConfig, AbsentAndNullMeanTheDefaultsOfTransformers) {
  json llama = {{"model_type", "llama"},          {"hidden_size", 64},       {"num_hidden_layers", 1},
                {"num_attention_heads", 4},       {"intermediate_size", 99}, {"vocab_size", 10},
                {"num_key_value_heads", nullptr}, {"head_dim", nullptr},     {"rope_scaling", nullptr},
                {"eos_token_id", {2, 3}},         {"bos_token_id", nullptr}};
  ModelSpec spec = read(llama);
  EXPECT_EQ(spec.kv_heads, 4);
  EXPECT_EQ(spec.head_dim, 16);
  EXPECT_EQ(spec.max_seq, 2048);
  EXPECT_EQ(spec.norm_eps, 1e-6);
  EXPECT_EQ(spec.rope_theta, 10000);
  EXPECT_FALSE(spec.tied_head);
  EXPECT_EQ(spec.bos_token, std::nullopt);
  EXPECT_EQ(spec.eos_tokens, (std::vector<int64_t>{2, 3}));
  json gpt2 = {{"model_type", "gpt2"}, {"n_embd", 64},     {"n_layer", 1},
               {"n_head", 4},          {"vocab_size", 10}, {"n_inner", 100}};
  EXPECT_EQ(read(gpt2).ffn, 100);
  EXPECT_TRUE(read(gpt2).tied_head);
}

TEST(HfConfig, WrittenTextIsWhatTransformersReads) {
  json llama = json::parse(hf_config_json(find_preset("llama3.1-8b")->spec));
  EXPECT_EQ(llama["architectures"], json({"LlamaForCausalLM"}));
  EXPECT_EQ(llama["model_type"], "llama");
  EXPECT_EQ(llama["torch_dtype"], "float32");
  EXPECT_EQ(llama["hidden_act"], "silu");
  EXPECT_EQ(llama["rope_scaling"]["rope_type"], "llama3");
  EXPECT_TRUE(llama["rope_scaling"]["factor"].is_number_float());  // `transformers` insists
  EXPECT_EQ(llama["eos_token_id"], 128001);
  json gpt2 = json::parse(hf_config_json(find_preset("gpt2")->spec));
  EXPECT_EQ(gpt2["architectures"], json({"GPT2LMHeadModel"}));
  EXPECT_EQ(gpt2["activation_function"], "gelu_new");
  EXPECT_EQ(gpt2["tie_word_embeddings"], true);
  EXPECT_EQ(gpt2["resid_pdrop"], 0.0);

  ModelSpec spec = find_preset("llama-7b")->spec;
  spec.bos_token.reset();
  spec.eos_tokens = {5, 6};
  EXPECT_EQ(spec_from_hf_config(hf_config_json(spec), "x"), spec);
  spec.eos_tokens.clear();
  EXPECT_EQ(spec_from_hf_config(hf_config_json(spec), "x"), spec);
  spec.vocab = 0;
  EXPECT_THROW(hf_config_json(spec), Bug);
}

TEST(HfConfig, RefusesByName) {
  EXPECT_EQ(complaint_about(kLlama32, {{"hidden_act", "gelu"}}),
            "config.json hidden_act: \"gelu\" is not supported; expected silu or swish");
  EXPECT_EQ(complaint_about(kLlama32, {{"rope_scaling", {{"type", "mrope"}, {"factor", 2.0}}}}),
            "config.json rope_scaling type: \"mrope\" is not supported; expected one of "
            "default, linear, dynamic, llama3, yarn, longrope");
  EXPECT_EQ(
      complaint_about(kLlama32, {{"partial_rotary_factor", 0.5}}),
      "config.json partial_rotary_factor: 0.5, which transformers ignores for this model type: it turns whole heads; "
      "expected 1 or no such key; model types that turn a part of each head are phi3, nemotron, glm4_moe and "
      "gpt_neox");
  auto quantized = [](const json& config) { return complaint_about(kLlama32, {{"quantization_config", config}}); };
  for (const char* method : {"gptq", "awq", "bitsandbytes", "compressed-tensors"})
    EXPECT_TRUE(quantized({{"quant_method", method}})
                    .starts_with(fmt::format("config.json quantization_config: weights quantized by \"{}\" are not "
                                             "supported; expected weights in f32, bf16 or f16: the original model",
                                             method)));
  EXPECT_NE(quantized({{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}}).find("\"bitsandbytes int8\""),
            std::string::npos);
  EXPECT_EQ(quantized({{"quant_method", "fp8"}}), "");
  EXPECT_EQ(quantized({{"quant_method", "fp8"}, {"fmt", "e4m3"}, {"weight_block_size", {128, 128}}}), "");
  for (const json& other : {json{{"quant_method", "fp8"}, {"weight_block_size", {64, 128}}},
                            json{{"quant_method", "fp8"}, {"fmt", "e5m2"}}})
    EXPECT_NE(quantized(other).find("\"fp8 other than e4m3 in blocks of 128 x 128\""), std::string::npos);
  EXPECT_NE(quantized({{"quant_method", "mxfp4"}}).find("\"mxfp4\""), std::string::npos);
  EXPECT_NE(quantized({{"bits", 4}}).find("\"an unnamed method\""), std::string::npos);
  EXPECT_EQ(complaint_about(kGpt2, {{"activation_function", "tanh"}}),
            "config.json activation_function: \"tanh\" is not supported; expected one of gelu, gelu_python, gelu_new, "
            "gelu_pytorch_tanh, gelu_fast, gelu_python_tanh, quick_gelu, relu, relu2, silu, swish");
  EXPECT_EQ(complaint_about(kGpt2, {{"add_cross_attention", true}}),
            "config.json add_cross_attention: true is not supported; expected false");
  EXPECT_EQ(complaint_about(kGpt2, {{"model_type", "mamba"}}),
            "config.json model_type: \"mamba\" is not supported; expected " + all_types());
  for (const char* type : {"grok", "jamba", "dbrx", "deepseek_v32"})
    EXPECT_EQ(complaint_about(kLlama1, {{"model_type", type}}),
              fmt::format("config.json model_type: \"{}\": {}; expected {}", type, why_unsupported(type), all_types()));
}

TEST(HfConfig, GptOssMayBeInMxfp4) {
  json config = architecture_data("gpt_oss")["released"]["gpt-oss-20b"];
  ASSERT_EQ(config["quantization_config"]["quant_method"], "mxfp4");
  EXPECT_EQ(complaint_about(config.dump()), "");
  ModelSpec without_yarn = find_preset("gpt-oss-20b")->spec;
  without_yarn.rope_scaling.reset();
  EXPECT_EQ(spec_from_hf_config(hf_config_json(without_yarn), "x"), without_yarn);
  config["swiglu_limit"] = 0;
  EXPECT_NE(complaint_about(config.dump()).find("experts.swiglu_limit: got 0; expected a number above 0"),
            std::string::npos)
      << complaint_about(config.dump());
  config["swiglu_limit"] = 7;
  config["layer_types"][3] = "chunked_attention";
  EXPECT_NE(complaint_about(config.dump()).find("layer_types"), std::string::npos);
}

TEST(HfConfig, RefusesBadValues) {
  EXPECT_EQ(complaint_about(kLlama32, {{"hidden_size", "big"}, {"rms_norm_eps", false}}),
            "config.json hidden_size: got \"big\"; expected an integer from 0 to 2147483647\n"
            "config.json rms_norm_eps: got false; expected a number");
  EXPECT_EQ(complaint_about(kLlama32, {{"hidden_size", 18446744073709551615u}}),
            "config.json hidden_size: got 18446744073709551615; expected an integer from 0 to 2147483647");
  EXPECT_EQ(complaint_about(kLlama32, {{"num_hidden_layers", 2000000000}}),
            "config.json num_hidden_layers: got 2000000000; expected an integer from 1 to 16384");
  EXPECT_EQ(complaint_about(kLlama32, {{"num_attention_heads", 7}}),
            "config.json num_key_value_heads: kv_heads 8 does not divide heads 7; expected a divisor of 7\n"
            "config.json num_attention_heads: heads 7 does not divide hidden 2048; expected a divisor of 2048");
  EXPECT_EQ(complaint_about(kLlama32, {{"num_attention_heads", 0}}),
            "config.json num_attention_heads: got 0; expected an integer from 1 to 16384");
  EXPECT_EQ(complaint_about(kLlama32, {{"vocab_size", nullptr}}),
            "config.json vocab_size: is missing; expected an integer");
  EXPECT_EQ(complaint_about(kLlama32, {{"vocab_size", 0}}),
            "config.json vocab_size: got 0; expected an integer of at least 1");
  EXPECT_EQ(complaint_about(kLlama32, {{"eos_token_id", {1, "x"}}}),
            "config.json eos_token_id: got \"x\"; expected an integer from 0 to 2147483647");
  EXPECT_EQ(complaint_about(kLlama32, {{"rope_scaling", 3}}), "config.json rope_scaling: got 3; expected an object");
  EXPECT_EQ(complaint_about(kLlama32, {{"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}}}),
            "config.json rope_scaling low_freq_factor: is missing; expected a number\n"
            "config.json rope_scaling high_freq_factor: is missing; expected a number");
  auto scaled = [](const json& scaling) { return complaint_about(kLlama32, {{"rope_scaling", scaling}}); };
  EXPECT_EQ(scaled({{"rope_type", "yarn"}}), "config.json rope_scaling factor: is missing; expected a number");
  EXPECT_EQ(scaled({{"rope_type", "yarn"}, {"factor", 4.0}, {"beta_fast", 1.0}, {"beta_slow", 2.0}}),
            "config.json rope_scaling.beta_fast: beta_fast 1 is below beta_slow 2");
  EXPECT_EQ(scaled({{"rope_type", "longrope"}, {"short_factor", {1.0}}}),
            "config.json rope_scaling long_factor: is missing; expected a list of numbers");
  EXPECT_EQ(scaled({{"rope_type", "longrope"}, {"short_factor", {1.0}}, {"long_factor", json::array({"x"})}}),
            "config.json rope_scaling long_factor: got \"x\" in the list; expected numbers");
  std::vector<double> divisors(32, 1.5);
  EXPECT_EQ(
      scaled({{"rope_type", "longrope"}, {"short_factor", divisors}, {"long_factor", {1.0, 2.0}}}),
      "config.json rope_scaling.long_factor: a list of 2 numbers; expected 32: one for each pair that RoPE turns in "
      "a head");
  EXPECT_EQ(scaled({{"rope_type", "linear"}, {"factor", 0.0}}),
            "config.json rope_scaling.factor: got 0; expected a number of at least 1");
}

// Experts that no router can choose from, each by the key of the file.
TEST(HfConfig, RefusesExpertsThatCannotBe) {
  auto complaint = [](const char* fixture, const json& changes) {
    return complaint_about(read_file(model_fixtures() / fixture / "config.json").c_str(), changes);
  };
  struct Case {
    const char* fixture;
    json changes;
    const char* said;
  };
  const Case cases[] = {
      {"deepseekv3", {{"n_shared_experts", 0}}, "n_shared_experts: got 0; expected an integer from 1"},
      {"deepseekv3",
       {{"n_group", 3}},
       "n_group: 8 experts do not stand in 3 equal groups; expected a number of groups that divides 8"},
      {"deepseekv3", {{"n_group", 8}}, "n_group: groups of 1 experts cannot be judged by their 2 best"},
      {"deepseekv3", {{"topk_group", 5}}, "topk_group: got 5; expected an integer from 1 to 4"},
      {"deepseekv3", {{"topk_group", 1}, {"num_experts_per_tok", 3}}, "1 groups of 2 experts are fewer than 3"},
      {"deepseekv3", {{"num_experts_per_tok", 9}}, "num_experts_per_tok: got 9; expected an integer from 1 to 8"},
      {"deepseekv3", {{"moe_layer_freq", 2}}, "moe_layer_freq: 2 is not supported"},
      {"deepseekv3", {{"scoring_func", "softmax"}}, "scoring_func: "},
      {"deepseekv2", {{"norm_topk_prob", true}}, "norm_topk_prob: "},
      {"deepseekv2", {{"n_group", nullptr}}, "n_group: is missing"},
      {"qwen2moe", {{"decoder_sparse_step", 0}}, "decoder_sparse_step: got 0; expected an integer from 1"},
      {"qwen2moe", {{"num_experts", 0}}, "num_experts: got 0; expected an integer from 1"},
      {"qwen2moe", {{"num_experts_per_tok", 0}}, "num_experts_per_tok: got 0; expected an integer from 1 to 8192"},
      {"qwen2moe", {{"shared_expert_intermediate_size", 0}}, "shared_expert_intermediate_size: "},
      {"qwen2moe", {{"mlp_only_layers", "1"}}, "mlp_only_layers: "},
      {"mixtral", {{"router_jitter_noise", 0.1}}, "router_jitter_noise: 0.1: noise"},
  };
  for (const Case& c : cases) {
    std::string said = complaint(c.fixture, c.changes);
    EXPECT_NE(said.find(c.said), std::string::npos) << c.fixture << c.changes.dump() << ": " << said;
  }
}

TEST(HfConfig, RefusesWhatIsNotAConfig) {
  EXPECT_EQ(complaint_about("{\"a\": }"), "config.json: byte 7 is not valid JSON; expected a Hugging Face config.json");
  EXPECT_EQ(complaint_about("[1]"), "config.json: got [1]; expected a Hugging Face config.json");
  EXPECT_EQ(complaint_about(""), "config.json: byte 1 is not valid JSON; expected a Hugging Face config.json");
  EXPECT_EQ(complaint_about("{\"a\": 1e999}"),
            "config.json: a number is too large for 64 bits; expected a Hugging Face config.json");
  EXPECT_EQ(complaint_about("{}"), "config.json model_type: is missing; expected " + all_types());
}

}  // namespace
}  // namespace sextant
