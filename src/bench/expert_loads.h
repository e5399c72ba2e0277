// Which experts tokens go to, made up for a benchmark: every expert gets as many, or some get more.
#pragma once

#include <cstdint>
#include <vector>

namespace sextant {

// How many of `slots` each expert gets, and all of them together: the same but for rounding; or, with an imbalance
// above 1, falling as a power of the expert's number from the first one, which gets so many times the mean.
std::vector<int64_t> expert_loads(int64_t experts, int64_t slots, double imbalance);

// The experts of each token, [tokens, per_token], so that expert e gets loads[e] slots and no token one expert twice.
// No load is above `tokens`, and they sum to tokens · per_token.
std::vector<int32_t> experts_of_tokens(int64_t tokens, int64_t per_token, const std::vector<int64_t>& loads);

}  // namespace sextant
