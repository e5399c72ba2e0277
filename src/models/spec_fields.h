// Compares two specs field by field (models/model_fields.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/model_fields.h"

namespace sextant {

// A field, or fields that say one thing together, such as which layers have a window. `value` is the same text for two
// specs exactly where they mean the same: a field that has no effect beside the others is "unused".
struct FieldValue {
  std::string_view name;  // as the key of the config: "experts.groups"
  FieldRole role;
  std::string value;
};
std::vector<FieldValue> field_values(const ModelSpec& spec);

struct FieldDifference {
  std::string_view name;
  std::string first, second;
};
// Of the fields that weights depend on (FieldRole::function).
std::vector<FieldDifference> function_differences(const ModelSpec& first, const ModelSpec& second);

}  // namespace sextant
