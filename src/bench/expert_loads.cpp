#include "bench/expert_loads.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/rng.h"

namespace sextant {

namespace {

// Relative loads of experts 1, 2, …: e^-power.
std::vector<double> falling(int64_t experts, double power) {
  std::vector<double> shares;
  for (int64_t e = 0; e < experts; ++e) shares.push_back(std::pow(static_cast<double>(e + 1), -power));
  return shares;
}

double first_over_mean(const std::vector<double>& shares) {
  double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  return shares.front() * static_cast<double>(shares.size()) / sum;
}

double power_for(int64_t experts, double imbalance) {
  double low = 0, high = 64;  // at which the first has all
  for (int round = 0; round < 60; ++round) {
    double middle = (low + high) / 2;
    (first_over_mean(falling(experts, middle)) < imbalance ? low : high) = middle;
  }
  return high;
}

}  // namespace

std::vector<int64_t> expert_loads(int64_t experts, int64_t slots, double imbalance) {
  BUG_IF(experts < 1 || imbalance < 1, "{} experts with an imbalance of {}", experts, imbalance);
  std::vector<double> shares = falling(experts, imbalance > 1 ? power_for(experts, imbalance) : 0);
  double sum = std::accumulate(shares.begin(), shares.end(), 0.0), before = 0;
  std::vector<int64_t> loads;
  for (double share : shares) {
    auto place = [&](double of) { return std::llround(of / sum * static_cast<double>(slots)); };
    loads.push_back(place(before + share) - place(before));
    before += share;
  }
  return loads;
}

std::vector<int32_t> experts_of_tokens(int64_t tokens, int64_t per_token, const std::vector<int64_t>& loads) {
  std::vector<int64_t> order(static_cast<size_t>(tokens));
  std::iota(order.begin(), order.end(), 0);
  Random random(7, "tokens of experts");
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
  std::vector<int32_t> experts(static_cast<size_t>(tokens * per_token), -1);
  // Slots one expert behind the other, dealt to the tokens in turn: those of one expert all go to different tokens.
  int64_t slot = 0;
  for (size_t e = 0; e < loads.size(); ++e) {
    BUG_IF(loads[e] > tokens, "expert {} has {} of {} tokens", e, loads[e], tokens);
    for (int64_t i = 0; i < loads[e]; ++i, ++slot) {
      int64_t token = order[static_cast<size_t>(slot % tokens)];
      experts[static_cast<size_t>(token * per_token + slot / tokens)] = static_cast<int32_t>(e);
    }
  }
  BUG_IF(slot != tokens * per_token, "{} slots of {} have an expert", slot, tokens * per_token);
  return experts;
}

}  // namespace sextant
