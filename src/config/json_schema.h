// The schema, written out for editors: a JSON Schema (draft 7) of the config file, which they check and complete it by.
#pragma once

#include <string>

namespace sextant {

std::string config_json_schema();

}  // namespace sextant
