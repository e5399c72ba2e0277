// A TOML text, read. Enters: the text and what to call it. Leaves: its tables and values in the order they are
// written, each under its full dotted key and with its position. Syntax errors and keys given twice are UserErrors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sextant {

struct TomlValue {
  struct Table {};  // what is in it follows as entries of their own (but not when it stands in a list)
  struct Date {
    std::string text;
  };
  using List = std::vector<TomlValue>;

  std::variant<Table, bool, int64_t, double, std::string, List, Date> is;
};

struct TomlEntry {
  std::string key;  // "model.rope_scaling.factor"; parts that are not bare words keep their quotes
  TomlValue value;
  int line = 0;  // of the key; both count from 1
  int column = 0;
};

std::vector<TomlEntry> parse_toml(std::string_view text, std::string_view place);

// For messages: short, on one line, strings quoted and escaped.
std::string shown(const TomlValue& value);

// The string as a TOML string, quotes included.
std::string toml_quoted(std::string_view text);

}  // namespace sextant
