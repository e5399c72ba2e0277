// The fields of a ModelSpec by name: what each is for, and what of two specs differs. A field that is added to the
// struct stops the build until it is declared here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec.h"

namespace sextant {

enum class FieldRole : uint8_t {
  function,  // what the weights compute: config.json holds it, and weights go with no other
  training,  // losses, routing and first weights in training: the same weights may be trained on with another
  naming,    // the name of a format, ids of tokens: weights do not depend on it
};

// A field, or fields that say one thing together, such as which layers have a window. `value` is the same text for two
// specs exactly where they mean the same: a field that has no effect beside the others has none.
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
