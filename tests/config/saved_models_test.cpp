// Every option of every architecture, drawn from the schema: what the config accepts is written into a config.json that
// gives the same model back, and what it refuses is refused by name.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "checkout.h"
#include "config/load.h"
#include "config/resolve.h"
#include "config/schema.h"
#include "models/hf_config.h"
#include "models/hf_type.h"
#include "models/models.h"
#include "models/presets.h"
#include "models/savable.h"
#include "models/spec_fields.h"

namespace sextant {
namespace {

// Keys of [model] that are not fields of a ModelSpec.
bool describes_the_run(std::string_view name) {
  static const std::set<std::string_view> kOthers{
      "model.preset",         "model.from",           "model.architecture",      "model.other_tokenizer",
      "model.dropout",        "model.hidden_dropout", "model.attention_dropout", "model.embedding_dropout",
      "model.mtp.loss_weight"};
  return kOthers.contains(name);
}

std::vector<const Key*> model_keys() {
  std::vector<const Key*> keys;
  for (const Key& key : schema())
    if (key.name.starts_with("model.") && !describes_the_run(key.name)) keys.push_back(&key);
  return keys;
}

std::vector<std::string> values_to_try(const Key& key) {
  if (key.kind == Kind::flag) return {"true", "false"};
  if (key.kind == Kind::integer) return {"0", "1", "2", "3", "4", "5", "8", "12", "64"};
  if (key.kind == Kind::number) return {"0", "0.125", "0.5", "1", "2", "40"};
  std::vector<std::string> words;
  for (std::string_view word : words_of(key)) words.emplace_back(word);
  return words;
}

std::vector<std::string> small_settings(const ModelDef& def) {
  std::vector<std::string> settings{fmt::format("model.architecture={}", def.name), "model.layers=4", "model.hidden=64",
                                    "model.heads=4", "model.vocab=97"};
  if (def.has_experts) settings.emplace_back("model.experts.count=16");
  return settings;
}

struct Attempt {
  std::optional<ModelSpec> spec;
  std::string complaint;
};

// The spec where the config is accepted; else what is said.
Attempt attempt(std::vector<std::string> settings, const std::vector<std::string>& more) {
  for (const std::string& setting : more) {
    std::string key = setting.substr(0, setting.find('=') + 1);
    std::erase_if(settings, [&](const std::string& before) { return before.starts_with(key); });
    settings.push_back(setting);
  }
  try {
    return {resolve_model(load_config("", settings)), ""};
  } catch (const UserError& error) {
    return {std::nullopt, error.what()};
  }
}

// Fields of a model that differ after it has been saved and read again; "" where none does.
std::string changed_by_saving(const ModelSpec& spec) {
  ModelSpec sized = spec;
  sized.vocab = std::max<int64_t>(sized.vocab, 97);
  std::string text;
  try {
    for (const FieldDifference& field :
         function_differences(sized, spec_from_hf_config(hf_config_json(sized), "config.json")))
      text += fmt::format("{}: {} -> {}\n", field.name, field.first, field.second);
  } catch (const UserError& error) {
    return error.what();
  }
  return text;
}

std::string leaf_of(std::string_view key) {
  return std::string(key.substr(key.rfind('.') + 1));
}

TEST(SavedModels, EachOptionIsSavedOrRefusedByName) {
  int saved = 0, refused = 0;
  for (const ModelDef* def : all_models())
    for (const Key* key : model_keys())
      for (const std::string& value : values_to_try(*key)) {
        std::string setting = fmt::format("{}={}", key->name, value);
        SCOPED_TRACE(fmt::format("{} {}", def->name, setting));
        Attempt made = attempt(small_settings(*def), {setting});
        ++(made.spec ? saved : refused);
        if (made.spec) {
          EXPECT_EQ(changed_by_saving(*made.spec), "");
          continue;
        }
        // Sizes that go together are complained about as one of them.
        bool is_size = key->name == "model.hidden" || key->name == "model.heads" || key->name == "model.head_dim";
        EXPECT_TRUE(is_size || made.complaint.find(leaf_of(key->name)) != std::string::npos) << made.complaint;
      }
  EXPECT_GT(saved, 1000);
  EXPECT_GT(refused, 1000);
}

// Options beside each other, and beside what a preset has.
TEST(SavedModels, DrawnOptionsAreSavedOrRefused) {
  std::mt19937 random(33);
  const std::vector<const Key*> keys = model_keys();
  auto drawn = [&](const auto& list) -> const auto& {
    return list[random() % list.size()];
  };
  int saved = 0;
  auto draw = [&](const std::vector<std::string>& start, int times) {
    for (int time = 0; time < times; ++time) {
      std::vector<std::string> more;
      for (int i = 0; i < 3; ++i) {
        const Key& key = *drawn(keys);
        more.push_back(fmt::format("{}={}", key.name, drawn(values_to_try(key))));
      }
      Attempt made = attempt(start, more);
      if (!made.spec) continue;
      ++saved;
      EXPECT_EQ(changed_by_saving(*made.spec), "") << fmt::format("{} {}", fmt::join(start, " "), fmt::join(more, " "));
    }
  };
  for (const ModelDef* def : all_models()) draw(small_settings(*def), 400);
  for (const Preset& preset : presets()) draw({fmt::format("model.preset={}", preset.name), "model.layers=5"}, 10);
  EXPECT_GT(saved, 300);
}

TEST(SavedModels, EveryKeyIsAFieldWithARole) {
  // Keys of one statement: which layers have a window, and which have experts.
  const std::set<std::string_view> kTogether{"full_attention_first", "experts.dense_first"};
  std::set<std::string_view> names;
  for (const FieldValue& field : field_values(presets().front().spec))
    EXPECT_TRUE(names.insert(field.name).second) << field.name << " is declared twice";
  for (const Key* key : model_keys()) {
    std::string_view name = key->name.substr(std::string_view("model.").size());
    EXPECT_TRUE(names.contains(name) || kTogether.contains(name)) << key->name;
  }
}

std::vector<std::string> tensor_names(const ModelSpec& spec) {
  std::set<std::string> names;
  for (const HfTensor& tensor : model_of(spec).tensors(spec)) names.insert(tensor.name);
  return {names.begin(), names.end()};
}

// Judged by transformers itself, where scripts/peers has been run.
TEST(SavedModels, TransformersTakesEachOption) {
  const std::string python = std::string(checkout::kSources) + "/build/peers/bin/python";
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "scripts/peers has not been run";
  std::string lines;
  for (const ModelDef* def : all_models()) {
    if (def->hf_types.front().known == HfKnown::ours) continue;
    std::set<std::string> seen;
    for (const Key* key : model_keys()) {
      constexpr int kValuesOfAKey = 2;  // a model of transformers takes a tenth of a second
      int tried = 0;
      for (const std::string& value : values_to_try(*key)) {
        if (tried == kValuesOfAKey) break;
        std::string setting = fmt::format("{}={}", key->name, value);
        Attempt made = attempt(small_settings(*def), {setting});
        if (!made.spec || made.spec->vocab == 0) continue;  // no tokenizer says how many ids there are
        std::string config = hf_config_json(*made.spec);
        if (!seen.insert(config).second) continue;
        ++tried;
        nlohmann::json line{{"name", fmt::format("{} {}", def->name, setting)},
                            {"config", nlohmann::json::parse(config)},
                            {"tensors", tensor_names(*made.spec)}};
        lines += line.dump() + "\n";
      }
    }
  }
  std::filesystem::path file = std::filesystem::temp_directory_path() / fmt::format("sextant-options-{}", ::getpid());
  write_file_atomically(file, lines);
  std::string script = std::string(checkout::kSources) + "/tests/peers/option_configs.py";
  EXPECT_EQ(std::system(fmt::format("{} {} {}", python, script, file.string()).c_str()), 0);
  std::filesystem::remove(file);
}

std::string refusal_of(const std::vector<std::string>& settings) {
  return attempt({"model.layers=4", "model.hidden=64", "model.heads=4", "model.vocab=97"}, settings).complaint;
}

// Options that a config.json of the model type has no key for, or that the class of transformers refuses.
TEST(SavedModels, WhatTransformersLacksIsRefusedBeforeTraining) {
  for (const char* type : {"linear", "dynamic", "llama3", "yarn"})
    EXPECT_NE(refusal_of({"model.architecture=phi3", fmt::format("model.rope_scaling.type={}", type),
                          "model.rope_scaling.factor=2"})
                  .find(fmt::format("model.rope_scaling.type={}: phi3 does not scale its RoPE by {}", type, type)),
              std::string::npos);
  EXPECT_NE(refusal_of({"model.architecture=phi3", "model.rope_scaling.factor=2"})
                .find("model.rope_scaling.factor=2: phi3 does not scale its RoPE by llama3"),
            std::string::npos);
  EXPECT_NE(refusal_of({"model.architecture=deepseek_v2", "model.experts.normalise=true"})
                .find("model.experts.normalise=true: "),
            std::string::npos);
  EXPECT_NE(refusal_of({"model.architecture=llama", "model.temperature_strength=0.5"})
                .find("model.temperature_strength=0.5: llama has no temperature of attention"),
            std::string::npos);
  EXPECT_NE(refusal_of({"model.architecture=llama4", "model.experts.every=5"}).find("model.experts.every=5: "),
            std::string::npos);
}

// Beside a preset of Mistral, options that its model type has no key for make it a Llama.
TEST(SavedModels, OptionsGoBeforeThePresetsModelType) {
  Attempt made = attempt({"model.preset=mistral-7b-v0.3"}, {"model.qkv_bias=true", "model.out_bias=true"});
  ASSERT_TRUE(made.spec) << made.complaint;
  EXPECT_NE(hf_config_json(*made.spec).find("\"model_type\": \"llama\""), std::string::npos);
  made = attempt({"model.preset=mistral-7b-v0.3"}, {"model.architecture=nemotron"});
  ASSERT_TRUE(made.spec) << made.complaint;
  EXPECT_NE(hf_config_json(*made.spec).find("\"model_type\": \"nemotron\""), std::string::npos);
}

TEST(SavedModels, TrainingOnlyFieldsMayDiffer) {
  ModelSpec spec = *attempt({}, {"model.preset=deepseek-v3"}).spec, other = spec;
  other.experts->drop_above = 1.5;
  other.experts->forced_balance = true;
  other.experts->balance_loss = other.experts->z_loss = 0.5;
  other.init_std = 0.5;
  other.padding_token = 3;
  EXPECT_TRUE(function_differences(spec, other).empty());
  other.experts->keep_groups = 2;
  other.rope_theta = 5e5;
  std::vector<FieldDifference> found = function_differences(spec, other);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "rope_theta");
  EXPECT_EQ(found[1].name, "experts.keep_groups");
  EXPECT_EQ(found[1].first, "4");
  EXPECT_EQ(found[1].second, "2");
}

}  // namespace
}  // namespace sextant
