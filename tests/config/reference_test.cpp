#include "config/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/files.h"
#include "checkout.h"
#include "config/schema.h"

namespace sextant {
namespace {

TEST(Reference, CommittedPageIsTheGeneratedOne) {
  const std::string path = std::string(checkout::kSources) + "/docs/config.md";
  if (std::getenv("SEXTANT_REWRITE_DOCS")) write_file_atomically(path, config_reference());
  EXPECT_EQ(read_file(path), config_reference()) << "run the test with SEXTANT_REWRITE_DOCS=1 to write the page anew";
}

TEST(Reference, HelpNamesTheKeysOfASection) {
  std::string help = config_help("pipeline");
  EXPECT_NE(help.find("pipeline.chunks\n    Parts of the model"), std::string::npos);
  EXPECT_EQ(help.find("model.hidden"), std::string::npos);
  for (const Key& key : schema()) EXPECT_NE(config_help().find(std::string(key.name) + "\n"), std::string::npos);
}

TEST(Schema, EveryRowIsComplete) {
  std::set<std::string_view> names, known_sections;
  for (const Section& section : sections()) known_sections.insert(section.name);
  for (const Key& key : schema()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name << " stands twice";
    EXPECT_TRUE(known_sections.contains(section_of(key.name))) << key.name;
    EXPECT_TRUE(key.help.ends_with('.')) << key.name;
    EXPECT_EQ(find_key(key.name), &key);
    // A default that its own row would refuse, or none at all.
    ConfigValue value = key.get(RunConfig{});
    if (std::holds_alternative<std::monostate>(value)) {
      EXPECT_FALSE(key.unset.empty()) << key.name;
    } else if (auto integer = std::get_if<int64_t>(&value)) {
      EXPECT_TRUE(key.range.contains(static_cast<double>(*integer))) << key.name;
    } else if (auto number = std::get_if<double>(&value)) {
      EXPECT_TRUE(key.range.contains(*number)) << key.name;
    } else if (auto text = std::get_if<std::string>(&value); text && !key.choices.empty()) {
      std::vector<std::string_view> words = words_of(key);
      EXPECT_NE(std::find(words.begin(), words.end(), *text), words.end()) << key.name;
    }
  }
}

std::string another_word(const Key& key, const ConfigValue& than) {
  for (std::string_view word : words_of(key))
    if (ConfigValue(std::string(word)) != than) return std::string(word);
  return "else";
}

TEST(Schema, EveryKeySetsAFieldOfItsOwn) {
  for (const Key& key : schema()) {
    RunConfig run;
    ConfigValue other;
    switch (key.kind) {
      case Kind::flag:
        other = key.get(run) != ConfigValue(true);
        break;
      case Kind::integer:
        other = int64_t{987};
        break;
      case Kind::number:
        other = 0.987;
        break;
      case Kind::text:
        other = another_word(key, key.get(run));
        break;
      case Kind::list:
        other = std::vector<std::string>{another_word(key, {})};
        break;
      case Kind::numbers:
        other = std::vector<double>{0.987};
        break;
    }
    key.set(run, other);
    for (const Key& each : schema())
      EXPECT_EQ(each.get(run) != each.get(RunConfig{}), &each == &key) << key.name << " and " << each.name;
  }
}

}  // namespace
}  // namespace sextant
