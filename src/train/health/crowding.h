// When a machine is crowded: more threads could run than it has cores for (RankTimes::crowding).
#pragma once

namespace sextant {

// With more than this for each core, who gets one is a matter of chance.
constexpr double kCrowded = 1.25;

}  // namespace sextant
