// The script of plan_explorer.h and its style: shows a plan of the grid when a slider moves.
#pragma once

#include <string_view>

namespace sextant {

std::string_view explorer_script();
std::string_view explorer_style();

}  // namespace sextant
