// The table of all model definitions, in the order of models.def.
#pragma once

#include <span>
#include <string_view>

#include "models/model_def.h"

namespace sextant {

std::span<const ModelDef* const> all_models();
const ModelDef* find_model(std::string_view architecture);  // null for an unknown one
const ModelDef& model_of(const ModelSpec& spec);            // UserError for an unknown one

}  // namespace sextant
