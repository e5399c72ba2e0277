#include "models/savable.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "models/hf_config.h"
#include "models/hf_type.h"
#include "models/spec_fields.h"

namespace sextant {

std::vector<SpecProblem> problems_of_saving(const ModelSpec& spec) {
  constexpr std::string_view kPlace = "config.json";
  ModelSpec sized = spec;
  sized.vocab = std::max({spec.vocab, int64_t{1}, spec.padding_token.value_or(0) + 1});
  const HfType& type = hf_type_of(sized);
  std::vector<SpecProblem> problems;
  try {
    ModelSpec saved = spec_from_hf_config(hf_config_json(sized), kPlace);
    for (const FieldDifference& field : function_differences(sized, saved))
      problems.push_back({{field.name},
                          fmt::format("{} cannot be saved: config.json of the model type {} would say {}", field.first,
                                      type.model_type, field.second),
                          field.second});
  } catch (const UserError& error) {
    for (const Complaint& complaint : error.complaints()) {
      std::string_view key = std::string_view(complaint.place).substr(kPlace.size());
      key.remove_prefix(std::min(key.size(), size_t{1}));
      auto name = std::ranges::find(type.names, key, &HfName::key);
      problems.push_back({{name == type.names.end() ? "architecture" : name->field},
                          fmt::format("the config.json of a checkpoint could not be read: {} {}", key, complaint.got),
                          complaint.expected});
    }
  }
  return problems;
}

}  // namespace sextant
