// The JSON Schema of the config says of every key what loading it does: the same values are allowed and refused.
#include "config/json_schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/toml_document.h"
#include "checkout.h"
#include "config/load.h"
#include "config/schema.h"

namespace sextant {
namespace {

using Json = nlohmann::json;

// The part of JSON Schema that ours uses; a keyword it does not know is an error.
bool is_valid(const Json& schema, const Json& value) {
  for (const auto& [keyword, rule] : schema.items()) {
    bool holds = true;
    if (keyword == "type") {
      holds = rule == "object"    ? value.is_object()
              : rule == "array"   ? value.is_array()
              : rule == "boolean" ? value.is_boolean()
              : rule == "string"  ? value.is_string()
              : rule == "number"  ? value.is_number()
                                  : value.is_number_integer() ||
                                       (value.is_number() && value.get<double>() == std::floor(value.get<double>()));
    } else if (keyword == "enum") {
      holds = std::find(rule.begin(), rule.end(), value) != rule.end();
    } else if (keyword == "minimum") {
      holds = value >= rule;
    } else if (keyword == "maximum") {
      holds = value <= rule;
    } else if (keyword == "exclusiveMinimum") {
      holds = value > rule;
    } else if (keyword == "exclusiveMaximum") {
      holds = value < rule;
    } else if (keyword == "anyOf") {
      holds = std::any_of(rule.begin(), rule.end(), [&](const Json& each) { return is_valid(each, value); });
    } else if (keyword == "items") {
      for (const Json& item : value) holds = holds && is_valid(rule, item);
    } else if (keyword == "properties") {
      for (const auto& [name, inner] : value.items())
        holds = holds && rule.contains(name) && is_valid(rule.at(name), inner);
    } else if (keyword != "$schema" && keyword != "title" && keyword != "description" && keyword != "default" &&
               keyword != "additionalProperties") {
      ADD_FAILURE() << "the test does not know " << keyword;
    }
    if (!holds) return false;
  }
  return true;
}

Json as_json(const TomlValue& value) {
  if (auto list = std::get_if<TomlValue::List>(&value.is)) {
    Json out = Json::array();
    for (const TomlValue& item : *list) out.push_back(as_json(item));
    return out;
  }
  if (auto flag = std::get_if<bool>(&value.is)) return *flag;
  if (auto integer = std::get_if<int64_t>(&value.is)) return *integer;
  if (auto number = std::get_if<double>(&value.is)) return *number;
  if (auto text = std::get_if<std::string>(&value.is)) return *text;
  return Json::object();
}

Json as_json(const std::string& toml) {
  Json out = Json::object();
  for (const TomlEntry& entry : parse_toml(toml, "test")) {
    std::string path = "/" + entry.key;
    std::replace(path.begin(), path.end(), '.', '/');
    Json value = as_json(entry.value);
    if (!value.is_object()) out[Json::json_pointer(path)] = value;
  }
  return out;
}

const Json& whole_schema() {
  static const Json schema = Json::parse(config_json_schema());
  return schema;
}

const Json& property_of(std::string_view key) {
  std::string path = "/properties/";
  for (char c : key) path += c == '.' ? "/properties/" : std::string(1, c);
  return whole_schema().at(Json::json_pointer(path));
}

TEST(JsonSchema, HasEveryKeyWithItsTextAndDefault) {
  for (const Key& key : schema()) {
    const Json& property = property_of(key.name);
    EXPECT_NE(property.at("description").get<std::string>().find(key.help), std::string::npos) << key.name;
    EXPECT_EQ(property.contains("default"), key.unset.empty()) << key.name;
    if (property.contains("default")) {
      EXPECT_TRUE(is_valid(property, property["default"])) << key.name;
    }
  }
}

TEST(JsonSchema, EveryConfigOfTheRepositoryIsValid) {
  size_t files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(checkout::kSources) + "/configs")) {
    if (entry.path().extension() != ".toml") continue;
    ++files;
    EXPECT_TRUE(is_valid(whole_schema(), as_json(read_file(entry.path())))) << entry.path();
  }
  EXPECT_GE(files, 5u);
}

// Loading is the other side: a value at the ends of every range, and one beyond, is allowed by both or by neither.
TEST(JsonSchema, AllowsWhatLoadingAllows) {
  auto loads = [](const Key& key, const std::string& value) {
    try {
      std::vector<std::string> overrides{"model.preset=gpt2", fmt::format("{}={}", key.name, value)};
      load_config("", overrides);
      return true;
    } catch (const UserError& error) {
      // Keys that do not go together are no matter of the schema; a value that its own row refuses is.
      return std::ranges::none_of(error.complaints(), [&](const Complaint& complaint) {
        return complaint.got == "got " + value && complaint.expected == expected_of(key);
      });
    }
  };
  for (const Key& key : schema()) {
    if (key.kind != Kind::integer && key.kind != Kind::number) continue;
    for (double end : {key.range.low, key.range.high}) {
      if (!std::isfinite(end)) continue;
      for (double value : {end - 1, end, end + 1}) {
        std::string text = fmt::format("{:.0f}", value);
        if (value != std::floor(value) || std::abs(value) > 1e15) continue;
        EXPECT_EQ(is_valid(property_of(key.name), Json::parse(text)), loads(key, text)) << key.name << "=" << text;
      }
    }
  }
  EXPECT_FALSE(is_valid(whole_schema(), {{"model", {{"hiden", 64}}}}));
  EXPECT_FALSE(is_valid(whole_schema(), {{"device", "gpu"}}));
  EXPECT_FALSE(is_valid(whole_schema(), {{"model", {{"preset", "gpt9"}}}}));
  EXPECT_TRUE(is_valid(whole_schema(), {{"data", {{"train", {"a.txt", "b.txt"}}}}}));
  EXPECT_FALSE(is_valid(whole_schema(), {{"data", {{"train", {1, 2}}}}}));
}

}  // namespace
}  // namespace sextant
