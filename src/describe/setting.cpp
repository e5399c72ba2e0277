#include "describe/setting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/toml_document.h"

namespace sextant {

bool Range::contains(double value) const {
  bool above_low = low_end == RangeEnd::included ? value >= low : value > low;
  bool below_high = high_end == RangeEnd::included ? value <= high : value < high;
  return std::isfinite(value) && above_low && below_high;
}

std::vector<std::string_view> words_of(const Setting& setting) {
  std::vector<std::string_view> words;
  for (const ChoiceText& choice : setting.choices) words.push_back(choice.word);
  return words;
}

namespace {

std::string range_text(const Range& range) {
  bool bounded_below = std::isfinite(range.low), bounded_above = std::isfinite(range.high);
  // {:.0f} and not {}: large limits are powers of two, and people would not recognise 1.07374e+09.
  auto shown = [](double value) {
    return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
  };
  std::string low = shown(range.low), high = shown(range.high);
  if (!bounded_below) return "";
  std::string_view above = range.low_end == RangeEnd::excluded ? "above" : "of at least";
  if (!bounded_above) return fmt::format(" {} {}", above, low);
  if (range.low_end == RangeEnd::excluded) return fmt::format(" above {}, at most {}", low, high);
  return fmt::format(" from {} to {}{}", low, range.high_end == RangeEnd::excluded ? "below " : "", high);
}

}  // namespace

std::string expected_of(const Setting& setting) {
  switch (setting.kind) {
    case Kind::flag:
      return "true or false";
    case Kind::integer:
      return "an integer" + range_text(setting.range);
    case Kind::number:
      return "a number" + range_text(setting.range);
    case Kind::list:
      return setting.choices.empty() ? "a string or a list of strings" : "a list of " + words_text(setting.choices);
    case Kind::numbers:
      return "a list of numbers" + range_text(setting.range);
    case Kind::text:
      break;
  }
  std::vector<std::string_view> words = words_of(setting);
  if (words.empty()) return "a string";
  return words.size() == 1 ? toml_quoted(words[0]) : fmt::format("one of {}", fmt::join(words, ", "));
}

std::string toml_text(const SettingValue& value) {
  struct Visitor {
    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(int64_t integer) const { return fmt::format("{}", integer); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::string& text) const { return toml_quoted(text); }
    std::string operator()(const std::vector<std::string>& list) const {
      std::string out = "[";
      for (const std::string& item : list) out += (out.size() > 1 ? ", " : "") + toml_quoted(item);
      return out + "]";
    }
    std::string operator()(const std::vector<double>& list) const { return fmt::format("[{}]", fmt::join(list, ", ")); }
  };
  return std::visit(Visitor{}, value);
}

}  // namespace sextant
