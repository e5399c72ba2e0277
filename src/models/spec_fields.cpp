#include "models/spec_fields.h"

#include <utility>

namespace sextant {

std::vector<FieldValue> field_values(const ModelSpec& spec) {
  std::vector<FieldValue> values;
  for (const ModelField& field : model_fields()) {
    if (!field.compared_as.empty()) continue;
    bool counts = !field.counts || field.counts(spec);
    values.push_back({field.name, field.role, counts ? field.text(spec) : "unused"});
  }
  return values;
}

std::vector<FieldDifference> function_differences(const ModelSpec& first, const ModelSpec& second) {
  if (first.architecture != second.architecture) return {{"architecture", first.architecture, second.architecture}};
  std::vector<FieldValue> of_first = field_values(first), of_second = field_values(second);
  std::vector<FieldDifference> differences;
  for (size_t i = 0; i < of_first.size(); ++i)
    if (of_first[i].role == FieldRole::function && of_first[i].value != of_second[i].value)
      differences.push_back({of_first[i].name, std::move(of_first[i].value), std::move(of_second[i].value)});
  return differences;
}

}  // namespace sextant
