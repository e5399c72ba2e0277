// The names of the numbers about experts that the update hands out for metrics, of the layer L as "load.L.NAME".
#pragma once

#include <array>
#include <string_view>

namespace sextant {

// The outputs of load_statistics, in their order.
inline constexpr std::array<std::string_view, 3> kLoadStatistics{"peak", "entropy", "unused"};
// Those of balance_bias behind the bias.
inline constexpr std::array<std::string_view, 2> kBiasStatistics{"bias_least", "bias_most"};

}  // namespace sextant
