// Under which names the update hands out what clip_lost says of a step.
#pragma once

#include <string_view>

namespace sextant {

inline constexpr std::string_view kLostRowsPath = "lost_rows";          // slots that found no row in one round
inline constexpr std::string_view kRoundsNeededPath = "rounds_needed";  // that would have served all

}  // namespace sextant
