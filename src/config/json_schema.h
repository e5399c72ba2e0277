// The schema, written out for editors: a JSON Schema (draft 7) of the config file, which they check and complete it by.
#pragma once

#include <span>
#include <string>

#include "config/schema.h"

namespace sextant {

std::string config_json_schema(std::span<const Key> keys = schema());

}  // namespace sextant
