// What shows a plan of the grid when a slider moves: the script of plan_explorer.h and its style.
#pragma once

#include <string_view>

namespace sextant {

std::string_view explorer_script();
std::string_view explorer_style();

}  // namespace sextant
