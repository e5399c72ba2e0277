// `sextant list models`: what it shows of each architecture holds.
#include "config/architecture_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "config/load.h"
#include "config/resolve.h"
#include "config/schema.h"
#include "models/hf_type.h"
#include "models/listing.h"
#include "models/models.h"
#include "models/presets.h"

namespace sextant {
namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words;
  for (size_t at = 0; at < list.size();) {
    size_t end = std::min(list.find(", ", at), list.size());
    words.push_back(list.substr(at, end - at));
    at = end + 2;
  }
  return words;
}

struct Shown {
  const ModelDef* def;
  std::vector<std::string> options, types;
};

std::vector<Shown> shown_rows() {
  std::vector<Shown> rows;
  std::istringstream lines(list_of_models(options_of));
  const ModelDef* def = nullptr;
  for (std::string line; std::getline(lines, line);) {
    if (const ModelDef* named = find_model(line.substr(0, line.find(' ')))) def = named;
    const std::string kOptions = "; options: ", kTypes = "; Hugging Face: ";
    size_t options = line.find(kOptions), types = line.find(kTypes);
    if (options == std::string::npos || types == std::string::npos) continue;
    options += kOptions.size();
    rows.push_back({def, split(line.substr(options, types - options)), split(line.substr(types + kTypes.size()))});
  }
  return rows;
}

bool is_accepted(const ModelDef& def, const std::vector<std::string>& settings) {
  std::vector<std::string> all{fmt::format("model.architecture={}", def.name), "model.layers=4", "model.hidden=64",
                               "model.heads=4", "model.vocab=97"};
  all.insert(all.end(), settings.begin(), settings.end());
  try {
    return resolve_model(load_config("", all)) !=
           resolve_model(load_config("", std::vector<std::string>(all.begin(), all.begin() + 5)));
  } catch (const UserError&) {
    return false;
  }
}

// Settings of the key, or of the table of that name.
std::vector<std::vector<std::string>> settings_of(const std::string& option) {
  std::vector<std::vector<std::string>> all;
  for (const Key& key : schema()) {
    std::string name = "model." + option;
    if (key.name != name && !(is_section(name) && key.name.starts_with(name + "."))) continue;
    std::vector<std::string> values{"1", "2", "3", "8", "16", "32", "96", "0.5"};
    if (key.kind == Kind::flag) values = {"true", "false"};
    if (!key.choices.empty()) values.clear();
    for (std::string_view word : words_of(key)) values.emplace_back(word);
    for (const std::string& value : values) {
      all.push_back({fmt::format("{}={}", key.name, value)});
      if (option.starts_with("rope_scaling")) all.back().emplace_back("model.rope_scaling.factor=2");
    }
  }
  return all;
}

TEST(ListedModels, ShowEveryArchitectureAndPreset) {
  std::vector<Shown> rows = shown_rows();
  ASSERT_EQ(rows.size(), all_models().size());
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].def, all_models()[i]);
  std::string text = list_of_models(options_of);
  for (const Preset& preset : presets()) EXPECT_NE(text.find(fmt::format("\n{} ", preset.name)), std::string::npos);
}

// With a value that changes the model, alone or beside another option that it needs.
TEST(ListedModels, ShownOptionsAreAccepted) {
  for (const Shown& row : shown_rows())
    for (const std::string& option : row.options) {
      if (option == "none") continue;
      std::vector<std::vector<std::string>> tried = settings_of(option);
      EXPECT_FALSE(tried.empty()) << row.def->name << " " << option << " is no key of the config";
      bool accepted = std::ranges::any_of(tried, [&](std::vector<std::string> settings) {
        if (is_accepted(*row.def, settings)) return true;
        return std::ranges::any_of(
            std::vector<std::string>{"qkv_bias=true", "qkv_bias=false", "out_bias=true", "out_bias=false", "window=8",
                                     "qk_norm=true", "experts.shared_ffn=16", "experts.ffn=32", "rotary_fraction=1"},
            [&](const std::string& beside) {
              std::vector<std::string> both = settings;
              both.push_back("model." + beside);
              return is_accepted(*row.def, both);
            });
      });
      EXPECT_TRUE(accepted) << row.def->name << " " << option << " is refused with every value";
    }
}

TEST(ListedModels, ShownTypesAreThoseOfHuggingFace) {
  for (const Shown& row : shown_rows()) {
    size_t published =
        std::ranges::count_if(row.def->hf_types, [](const HfType& type) { return type.known != HfKnown::ours; });
    if (published == 0) {
      EXPECT_EQ(row.types, std::vector<std::string>{"none"}) << row.def->name;
      continue;
    }
    EXPECT_EQ(row.types.size(), published);
    for (const std::string& name : row.types) {
      const HfType* type = find_hf_type(name.substr(0, name.find(' ')));
      ASSERT_TRUE(type) << name;
      EXPECT_EQ(type->known == HfKnown::remote_code, name.ends_with(" (remote code)")) << name;
    }
  }
  // transformers has no class of these.
  for (const char* own : {"palm", "megascale"}) EXPECT_EQ(find_hf_type(own)->known, HfKnown::ours);
}

TEST(ListedModels, HideWhatLeavesNoChoice) {
  auto has = [](std::string_view architecture, std::string_view option) {
    return std::ranges::count(options_of(*find_model(architecture)), option) > 0;
  };
  EXPECT_FALSE(has("gpt_oss", "experts.swiglu_limit"));  // no key
  EXPECT_FALSE(has("phi3", "rope_scaling"));             // longrope comes with a directory
  EXPECT_FALSE(has("deepseek_v2", "experts.normalise"));
  EXPECT_FALSE(has("deepseek_v2", "kv_heads"));
  EXPECT_FALSE(has("llama4", "experts.score"));
  EXPECT_TRUE(has("deepseek_v3", "experts.normalise"));
  EXPECT_TRUE(has("llama", "out_bias"));
  EXPECT_TRUE(has("llama", "rope_scaling"));
  EXPECT_TRUE(has("gpt2", "activation"));
}

}  // namespace
}  // namespace sextant
