// The words of `sextant list`, for the command line's help.
#pragma once

#include <string>
#include <vector>

#include "app/verbs.h"

namespace sextant {

std::vector<std::string> list_names();
std::string list_about();

}  // namespace sextant
