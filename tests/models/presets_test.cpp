#include "models/presets.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

#include "architecture_data.h"
#include "base/error.h"
#include "models/architectures.h"
#include "models/hf_config.h"
#include "models/hf_type.h"
#include "models/model.h"

namespace sextant {
namespace {

// Elements in the released weights, a tied matrix counted once.
TEST(Presets, CountsAreThePublishedOnes) {
  for (const ModelDef* def : all_models()) {
    nlohmann::json data = architecture_data(def->name), exact = data["counts"], printed = data["billions"];
    EXPECT_EQ(def->presets().size(), exact.size() + printed.size()) << def->name;
    for (const Preset& preset : def->presets()) {
      std::string name(preset.name);
      // From the graph itself; a token is enough for it.
      int64_t count = parameter_count(build_model(find_preset(name)->spec, {.seq = 1}, single_rank_mesh()));
      if (printed.contains(name))
        EXPECT_NEAR(static_cast<double>(count) / 1e9, printed[name].get<double>(), 0.01) << name;
      else
        EXPECT_EQ(nlohmann::json(count), exact[name]) << name;
    }
  }
}

// In both conventions: with the input's embedding and without.
TEST(Presets, ActiveCountsAreThePublishedOnes) {
  int compared = 0;
  for (const ModelDef* def : all_models()) {
    nlohmann::json active = architecture_data(def->name)["active"];
    for (const auto& [name, counts] : active.items()) {
      ActiveParameters ours = active_parameters(build_model(find_preset(name)->spec, {.seq = 1}, single_rank_mesh()));
      EXPECT_EQ(nlohmann::json({ours.all, ours.without_embedding}), counts) << name;
      ++compared;
    }
  }
  EXPECT_GE(compared, 6);
  Graph gpt2 = build_model(find_preset("gpt2")->spec, {.seq = 1}, single_rank_mesh());
  EXPECT_EQ(active_parameters(gpt2).all, parameter_count(gpt2));
  EXPECT_EQ(active_parameters(gpt2).without_embedding, parameter_count(gpt2)) << "its head is the embedding";
}

TEST(Presets, AreTheReleasedFiles) {
  for (const ModelDef* def : all_models()) {
    nlohmann::json released = architecture_data(def->name)["released"];
    for (const auto& [name, file] : released.items()) {
      ASSERT_NE(find_preset(name), nullptr) << name;
      ModelSpec spec = spec_from_hf_config(file.dump(), name);
      spec.padding_token.reset();  // a preset has none: it may be trained with another tokenizer
      spec.mtp_depths = 0;         // nor modules of multi-token prediction, until they are asked for
      EXPECT_EQ(spec, find_preset(name)->spec) << name;
    }
  }
}

TEST(Presets, ReleasedFilesWithWhatWeDoNotComputeAreRefusedByName) {
  for (const ModelDef* def : all_models()) {
    nlohmann::json data = architecture_data(def->name);
    for (const nlohmann::json& refused : data["refused"]) {
      nlohmann::json file = data["released"][refused["preset"].get<std::string>()];
      file.update(refused["changes"]);
      std::string said;
      try {
        spec_from_hf_config(file.dump(), "config.json");
      } catch (const UserError& error) {
        said = error.what();
      }
      EXPECT_EQ(said, refused["message"].get<std::string>()) << def->name;
    }
  }
}

// Every parameter is in the file, every row of it once.
TEST(Presets, EveryParameterHasItsPlaceInTheFile) {
  std::set<std::string> seen;
  for (const Preset& preset : presets()) {
    ModelSpec spec = preset.spec;
    spec.layers = 2 + (spec.experts ? spec.experts->dense_first : 0);
    if (!seen.insert(fmt::format("{} {} {} {} {}", spec.architecture, spec.qkv_bias, spec.qk_norm, spec.tied_head,
                                 spec.latent && spec.latent->q_rank > 0))
             .second)
      continue;
    std::map<std::string, int64_t> rows;
    for (const HfTensor& tensor : model_of(spec).tensors(spec)) rows[tensor.parameter] += tensor.rows;
    Graph graph = build_model(spec, {.seq = 1}, single_rank_mesh());
    for (const Value& value : graph.values) {
      if (value.kind != ValueKind::parameter) continue;
      EXPECT_EQ(rows[value.path], value.shape[0]) << preset.name << " " << value.path;
      rows.erase(value.path);
    }
    EXPECT_TRUE(rows.empty()) << preset.name << " " << rows.begin()->first;
  }
}

TEST(Presets, AreSoundAndFound) {
  for (const Preset& preset : presets()) {
    for (const SpecProblem& problem : problems_of(preset.spec)) ADD_FAILURE() << preset.name << ": " << problem.got;
    EXPECT_EQ(find_preset(preset.name), &preset);
    bool has_tokens = hf_type_of(preset.spec).known != HfKnown::ours;
    EXPECT_EQ(!preset.spec.eos_tokens.empty(), has_tokens) << preset.name;
  }
  EXPECT_EQ(find_preset("llama"), nullptr);
}

TEST(Presets, ValuesThatCountsDoNotShow) {
  auto spec = [](std::string_view name) { return find_preset(name)->spec; };
  EXPECT_EQ(spec("llama-7b").norm_eps, 1e-6);
  EXPECT_EQ(spec("llama-65b").norm_eps, 1e-5);
  EXPECT_EQ(spec("llama-7b").max_seq, 2048);
  EXPECT_EQ(spec("llama2-7b").norm_eps, 1e-5);
  EXPECT_EQ(spec("llama2-70b").rope_theta, 10000);
  EXPECT_EQ(spec("llama3-8b").rope_theta, 500000);
  EXPECT_EQ(spec("llama3-8b").rope_scaling, std::nullopt);
  EXPECT_EQ(spec("llama3.1-405b").rope_scaling, (RopeScaling{.factor = 8}));
  EXPECT_EQ(spec("llama3.2-3b").rope_scaling, (RopeScaling{.factor = 32}));
  EXPECT_EQ(spec("llama3.2-3b").head_dim, 128);
  EXPECT_EQ(spec("gpt2").bos_token, 50256);
  EXPECT_EQ(spec("gpt-neox-20b").activation, Activation::gelu_tanh);  // its config.json says gelu_fast
  EXPECT_EQ(spec("pythia-70m").activation, Activation::gelu);
  EXPECT_EQ(rotary_dims(spec("gpt-neox-20b")), 24);
  EXPECT_EQ(rotary_dims(spec("nemotron4-340b")), 96);
  EXPECT_EQ(spec("mistral-7b").window, 4096);
  EXPECT_EQ(spec("mistral-7b-v0.3").window, 0);
  EXPECT_EQ(spec("qwen3-4b").head_dim, 128);
  EXPECT_TRUE(spec("qwen2.5-7b").qkv_bias);
}

TEST(Presets, SurviveConfigJson) {
  for (const Preset& preset : presets()) EXPECT_EQ(spec_from_hf_config(hf_config_json(preset.spec), "x"), preset.spec);
}

TEST(Presets, WhatIsNotSupportedIsSaidSo) {
  for (const Preset& preset : presets()) EXPECT_EQ(why_unsupported(preset.name), "") << preset.name;
  for (std::string_view name : {"mixtral-8x70b", "llama4-behemoth", "gpt-oss-7b", "deepseek-moe-145b", "deepseek_v32"})
    EXPECT_EQ(why_unsupported(name),
              "of models with experts only Mixtral, OLMoE, Qwen 1.5 and 2 with experts, Qwen 3 with experts, "
              "DeepSeekMoE, DeepSeek V2, DeepSeek V3, gpt-oss, Llama 4, GLM-4.5 are supported yet")
        << name;
}

TEST(Models, AreFoundByTheirNames) {
  std::vector<std::string_view> names, words;
  for (const ChoiceText& choice : kArchitectures) words.push_back(choice.word);
  std::set<std::string_view> types;
  for (const ModelDef* def : all_models()) {
    names.push_back(def->name);
    EXPECT_EQ(find_model(def->name), def);
    for (const HfType& type : def->hf_types) {
      EXPECT_EQ(find_hf_type(type.model_type), &type);
      EXPECT_TRUE(types.insert(type.model_type).second) << type.model_type << " stands twice";
    }
  }
  EXPECT_EQ(names, words);
  EXPECT_EQ(find_model("none"), nullptr);
}

TEST(Spec, DefaultFfnIsThatOfTheFirstModels) {
  EXPECT_EQ(default_ffn("gpt2", 768), 3072);
  for (std::string_view name : {"llama-7b", "llama-13b", "llama-30b", "llama-65b"})
    EXPECT_EQ(default_ffn("llama", find_preset(name)->spec.hidden), find_preset(name)->spec.ffn);
}

TEST(Spec, SizesWithoutBoundsAreRefused) {
  ModelSpec spec = find_preset("gpt2")->spec;
  spec.layers = int64_t{1} << 62;
  spec.heads = 0;
  spec.vocab = -1;
  std::vector<SpecProblem> problems = problems_of(spec);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].fields.front(), "layers");
  EXPECT_EQ(problems[0].expected, "an integer from 1 to 16384");
  EXPECT_EQ(problems[1].fields.front(), "heads");
  EXPECT_EQ(problems[2].fields.front(), "vocab");
}

}  // namespace
}  // namespace sextant
