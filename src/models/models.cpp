#include "models/models.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "models/hf_type.h"

namespace sextant {

// Each is defined in the model file of its name, in a namespace of that name.
#define MODEL(name)            \
  namespace name {             \
  extern const ModelDef model; \
  }
#include "models/models.def"
#undef MODEL

bool ModelDef::takes(std::string_view option) const {
  return std::find(options.begin(), options.end(), option) != options.end();
}

std::span<const ModelDef* const> all_models() {
  static constexpr const ModelDef* kAll[] = {
#define MODEL(name) &name::model,
#include "models/models.def"
#undef MODEL
  };
  return kAll;
}

const ModelDef* find_model(std::string_view architecture) {
  for (const ModelDef* def : all_models())
    if (def->name == architecture) return def;
  return nullptr;
}

const ModelDef& model_of(const ModelSpec& spec) {
  if (const ModelDef* def = find_model(spec.architecture)) return *def;
  std::vector<std::string_view> known;
  for (const ModelDef* def : all_models()) known.push_back(def->name);
  throw UserError({.place = "model.architecture",
                   .got = fmt::format("unknown architecture '{}'", spec.architecture),
                   .expected = fmt::format("one of {}", fmt::join(known, ", "))});
}

const HfType* find_hf_type(std::string_view model_type) {
  for (const ModelDef* def : all_models())
    for (const HfType& type : def->hf_types)
      if (type.model_type == model_type) return &type;
  return nullptr;
}

const HfType& hf_type_of(const ModelSpec& spec) {
  const ModelDef& def = model_of(spec);
  if (!def.hf_type_of) return def.hf_types.front();
  const HfType* type = find_hf_type(def.hf_type_of(spec));
  BUG_IF(!type, "{} is written as the unknown model type {}", def.name, def.hf_type_of(spec));
  return *type;
}

}  // namespace sextant
