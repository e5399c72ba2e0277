// Options that the chosen mode of a verb does not use are refused, not passed over. A verb with several modes has one
// table that says in which of them each option has an effect; tests are made from the same table
// (tests/app/option_use_test.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

struct VerbMode {
  std::string_view name;   // "--search"
  std::string_view about;  // "the search for layouts (--search)"
};

// A set of modes: bit i is the table's mode i.
using ModeSet = uint32_t;

struct OptionUse {
  std::string_view option;  // as CLI11 names it: "--devices", "config"
  ModeSet modes = 0;        // in which it has an effect
};

struct OptionTable {
  std::span<const VerbMode> modes;
  std::span<const OptionUse> options;

  const OptionUse& use_of(std::string_view option) const;  // BUG when the table does not know it
};

// UserError with a complaint for every option given that `mode` does not use.
void refuse_unused(const OptionTable& table, size_t mode, const std::vector<std::string>& given);

}  // namespace sextant
