// The names of the op's outputs, in their order: what the update hands out for the layer L is called "load.L.NAME".
#pragma once

#include <array>
#include <string_view>

namespace sextant {

inline constexpr std::array<std::string_view, 3> kLoadStatistics{"peak", "entropy", "unused"};

}  // namespace sextant
