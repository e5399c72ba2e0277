// The schema, written out for people.
#pragma once

#include <string>
#include <string_view>

namespace sextant {

// The text of docs/config.md. A test holds the file to it.
std::string config_reference();

// For a terminal: the keys of one section, or all of them when it is empty.
std::string config_help(std::string_view section = "");

}  // namespace sextant
