// The schema, written out for people.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/schema.h"

namespace sextant {

// The text of docs/config.md. A test holds the file to it.
std::string config_reference(std::span<const Key> keys = schema());

// For a terminal: one key, the keys of one section, or all of them when the name is empty.
std::string config_help(std::string_view name = "", std::span<const Key> keys = schema());

// One of help's entries in parts.
std::string type_text(const Key& key);     // "`auto`, `cpu`, `cuda`", "integer of at least 1"
std::string default_text(const Key& key);  // as TOML, or in words

}  // namespace sextant
