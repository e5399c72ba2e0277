// Setting: what a single value of a config may be: its kind, its range or its words, and how that is said. Keys of the
// config (config/schema.h) and fields of a model (models/model_fields.h) are settings with a place.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "describe/choice.h"

namespace sextant {

// monostate: not given, and without a default.
using SettingValue =
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

constexpr Range at_least(double low) {
  return {.low = low};
}
constexpr Range above(double low) {
  return {.low = low, .low_end = RangeEnd::excluded};
}
constexpr Range from_to(double low, double high) {
  return {.low = low, .high = high};
}
constexpr Range above_to(double low, double high) {
  return {.low = low, .high = high, .low_end = RangeEnd::excluded};
}
constexpr Range from_0_below_1() {
  return {.low = 0, .high = 1, .high_end = RangeEnd::excluded};
}

struct Setting {
  Kind kind = Kind::text;
  std::span<const ChoiceText> choices = {};  // the allowed words; empty = any text
  Range range = {};                          // of integers and numbers, also in lists
};

// "an integer of at least 1", "one of auto, cpu, cuda"
std::string expected_of(const Setting& setting);

std::vector<std::string_view> words_of(const Setting& setting);

// As a value of TOML; empty for none.
std::string toml_text(const SettingValue& value);

}  // namespace sextant
