// The one table of all config keys. Parsing, defaults, checks of single values, help and docs/config.md come from it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/affects.h"
#include "config/run_config.h"

namespace sextant {

// monostate: not given, and without a default.
using ConfigValue =
    std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<std::string>, std::vector<double>>;

enum class Kind : uint8_t { flag, integer, number, text, list, numbers };

enum class RangeEnd : uint8_t { included, excluded };

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  RangeEnd low_end = RangeEnd::included;
  RangeEnd high_end = RangeEnd::included;

  bool contains(double value) const;
};

struct Key {
  std::string_view name;   // "model.hidden"
  std::string_view words;  // the allowed words, "auto|cpu|cuda"; empty = any text
  Range range;             // of integers and numbers, also in lists
  std::string_view unset;  // what holds when it is not given, where that is not a value
  std::string_view help;   // one or two sentences
  Kind kind = Kind::text;
  Affects affects = Affects::result;
  void (*set)(RunConfig&, const ConfigValue&) = nullptr;  // the value must be of the kind
  ConfigValue (*get)(const RunConfig&) = nullptr;
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

std::vector<std::string_view> words_of(const Key& key);
std::string expected_of(const Key& key);  // "an integer of at least 1", "one of auto, cpu, cuda"
std::string toml_text(const ConfigValue& value);

}  // namespace sextant
