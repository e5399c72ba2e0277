// The names of models.def, known at compile time.
#pragma once

#include <string_view>

namespace sextant {

// The words of model.architecture: "gpt2|llama|...".
#define MODEL(name) "|" #name
inline constexpr std::string_view kArchitectures = std::string_view(
#include "models/models.def"
                                                       )
                                                       .substr(1);
#undef MODEL

}  // namespace sextant
