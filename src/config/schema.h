// The one table of all config keys. Parsing, defaults, checks of single values, help and docs/config.md come from it.
// Keys of [model] that are fields of a ModelSpec are rows of models/model_fields.cpp, sizes of axes of mesh_axes.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/affects.h"
#include "config/run_config.h"
#include "describe/setting.h"

namespace sextant {

using ConfigValue = SettingValue;

// Whether a run that goes on from its checkpoint may have another value of a key.
enum class OnResume : uint8_t {
  accepted,
  refused,  // weights, optimizer states or data were made with the saved one
};

struct Key : Setting {
  std::string_view name;   // "model.hidden"
  std::string_view unset;  // what holds when it is not given, where that is not a value
  std::string_view help;   // one or two sentences; help_of adds what its words mean
  Affects affects = Affects::result;
  // Of keys that a setter sets; a field of the model may change unless weights depend on it.
  OnResume changed = OnResume::accepted;

  void set(RunConfig& run, const ConfigValue& value) const;  // the value must be of the kind
  ConfigValue get(const RunConfig& run) const;
  OnResume on_resume() const;

  // One of the two: a field of the model, or a field of RunConfig with its accessors.
  const ModelField* model_field = nullptr;
  void (*setter)(RunConfig&, const ConfigValue&) = nullptr;
  ConfigValue (*getter)(const RunConfig&) = nullptr;
};

struct Section {
  std::string_view name;  // "model"; "" = top level
  std::string_view help;
  Affects affects = Affects::result;  // of every key in it
};

// Both in the order of docs/config.md.
std::span<const Key> schema();
std::span<const Section> sections();

const Key* find_key(std::string_view name);         // nullptr when unknown
bool is_section(std::string_view name);             // "model", "model.rope_scaling"
std::string_view section_of(std::string_view key);  // "model" of "model.rope_scaling.factor"; "" at the top level

Affects affects_of(const Key& key);
std::string help_of(const Key& key);

}  // namespace sextant
