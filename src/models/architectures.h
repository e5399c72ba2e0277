// The names of models.def, known at compile time.
#pragma once

#include "describe/choice.h"

namespace sextant {

// The words of model.architecture.
inline constexpr ChoiceText kArchitectures[] = {
#define MODEL(name) {#name, ""},
#include "models/models.def"
#undef MODEL
};

}  // namespace sextant
