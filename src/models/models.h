// The table of all model definitions. Each name is a record in the model file of that name.
#pragma once

#include <span>
#include <string_view>

#include "models/model_def.h"

namespace sextant {

namespace models {
#define MODEL(name) extern const ModelDef name;
#include "models/models.def"
#undef MODEL
}  // namespace models

std::span<const ModelDef* const> all_models();
const ModelDef* find_model(std::string_view architecture);  // null for an unknown one
const ModelDef& model_of(const ModelSpec& spec);            // UserError for an unknown one

}  // namespace sextant
