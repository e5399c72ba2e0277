#include "config/changes.h"

#include <fmt/format.h>

#include "config/schema.h"

namespace sextant {

namespace {

std::string value_in(const ConfigValues& values, std::string_view key) {
  auto at = values.find(key);
  return at == values.end() ? "unset" : at->second;
}

}  // namespace

ConfigValues config_values(const RunConfig& run) {
  ConfigValues values;
  for (const Key& key : schema())
    if (ConfigValue value = key.get(run); !std::holds_alternative<std::monostate>(value))
      values.emplace(key.name, toml_text(value));
  return values;
}

std::string ConfigChange::text() const {
  return fmt::format("{} {} -> {}", key, before, after);
}

std::vector<ConfigChange> changes_between(const ConfigValues& before, const ConfigValues& after) {
  std::vector<ConfigChange> changes;
  const ConfigValues defaults = config_values(RunConfig());
  for (const Key& key : schema()) {
    std::string old_value = value_in(before, key.name), new_value = value_in(after, key.name);
    // A version that did not have the key worked as the default does now.
    if (!before.contains(key.name) && defaults.contains(key.name)) old_value = value_in(defaults, key.name);
    if (old_value != new_value) changes.push_back({std::string(key.name), old_value, new_value, affects_of(key)});
  }
  return changes;
}

}  // namespace sextant
