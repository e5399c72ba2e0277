#include "config/json_schema.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "config/schema.h"
#include "models/presets.h"

namespace sextant {

namespace {

using Json = nlohmann::ordered_json;

Json json_number(double value, Kind kind) {
  return kind == Kind::integer ? Json(static_cast<int64_t>(value)) : Json(value);
}

void add_range(Json& property, const Key& key) {
  const Range& range = key.range;
  if (std::isfinite(range.low))
    property[range.low_end == RangeEnd::included ? "minimum" : "exclusiveMinimum"] = json_number(range.low, key.kind);
  if (std::isfinite(range.high))
    property[range.high_end == RangeEnd::included ? "maximum" : "exclusiveMaximum"] = json_number(range.high, key.kind);
}

void add_words(Json& property, const Key& key) {
  std::vector<std::string_view> words = words_of(key);
  if (key.name == "model.preset")
    for (const Preset& preset : presets()) words.push_back(preset.name);
  if (!words.empty() && key.kind == Kind::text) property["enum"] = words;
}

// A list of one may be written without brackets.
Json list_of_strings() {
  return {{"anyOf", {{{"type", "string"}}, {{"type", "array"}, {"items", {{"type", "string"}}}}}}};
}

Json type_of(const Key& key) {
  switch (key.kind) {
    case Kind::flag:
      return {{"type", "boolean"}};
    case Kind::integer:
      return {{"type", "integer"}};
    case Kind::number:
      return {{"type", "number"}};
    case Kind::list:
      return list_of_strings();
    case Kind::numbers:
      return {{"type", "array"}, {"items", {{"type", "number"}}}};
    case Kind::text:
      break;
  }
  return {{"type", "string"}};
}

Json json_value(const ConfigValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>)
          return nullptr;
        else
          return held;
      },
      value);
}

Json property_of(const Key& key) {
  Json property = type_of(key);
  std::string about = help_of(key);
  if (!key.unset.empty()) about += fmt::format(" Not given: {}.", key.unset);
  property["description"] = about;
  add_words(property, key);
  add_range(key.kind == Kind::numbers ? property["items"] : property, key);
  if (key.unset.empty()) property["default"] = json_value(key.get(RunConfig{}));
  return property;
}

Json table_of(std::string_view about) {
  Json table{{"type", "object"}};
  if (!about.empty()) table["description"] = about;
  table["additionalProperties"] = false;
  table["properties"] = Json::object();
  return table;
}

// "rope_scaling.factor" into a table of its own.
void add_property(Json& table, std::string_view name, const Key& key) {
  size_t dot = name.find('.');
  if (dot == name.npos) {
    table["properties"][std::string(name)] = property_of(key);
    return;
  }
  Json& inner = table["properties"][std::string(name.substr(0, dot))];
  if (inner.is_null()) inner = table_of("");
  add_property(inner, name.substr(dot + 1), key);
}

}  // namespace

std::string config_json_schema(std::span<const Key> keys) {
  Json root{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "The config of a Sextant run"}};
  root.update(table_of(""));
  for (const Section& section : sections())
    if (!section.name.empty()) root["properties"][std::string(section.name)] = table_of(section.help);
  for (const Key& key : keys) add_property(root, key.name, key);
  return root.dump(2) + "\n";
}

}  // namespace sextant
