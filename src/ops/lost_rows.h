// Under which names a step hands out what clip_lost says of it, and how many slots drop_slots dropped.
#pragma once

#include <string_view>

namespace sextant {

inline constexpr std::string_view kLostRowsPath = "lost_rows";          // slots that found no row in one round
inline constexpr std::string_view kDroppedRowsPath = "dropped_rows";    // slots that experts did not take
inline constexpr std::string_view kRoundsNeededPath = "rounds_needed";  // that would have served all

}  // namespace sextant
