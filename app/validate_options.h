// The ways in which `sextant validate` judges predictions, and the table of which options each of them uses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/option_use.h"

namespace sextant {

enum class ValidateMode : uint8_t { predict, search, calibrate, hold_out };

const OptionTable& validate_options();

// By the options given; an option of another mode is then refused by refuse_unused.
ValidateMode validate_mode(const std::vector<std::string>& given);

}  // namespace sextant
