// How many local checkpoints of a rank there are at a time: the last, and the one before while it is written.
#pragma once

namespace sextant {

inline constexpr int kLocalSlots = 2;

}  // namespace sextant
