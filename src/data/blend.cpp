#include "data/blend.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace sextant {

namespace {

// Whole numbers of slots in proportion to the weights, by largest remainder.
std::vector<int64_t> shares_of(std::span<const double> weights, int64_t slots) {
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> shares;
  for (double weight : weights) shares.push_back(static_cast<int64_t>(weight / sum * static_cast<double>(slots)));
  std::vector<size_t> by_remainder(weights.size());
  std::iota(by_remainder.begin(), by_remainder.end(), size_t{0});
  auto remainder = [&](size_t i) {
    return weights[i] / sum * static_cast<double>(slots) - static_cast<double>(shares[i]);
  };
  std::stable_sort(by_remainder.begin(), by_remainder.end(),
                   [&](size_t a, size_t b) { return remainder(a) > remainder(b); });
  int64_t left = slots - std::accumulate(shares.begin(), shares.end(), int64_t{0});
  for (size_t i = 0; left > 0; ++i, --left) ++shares[by_remainder[i]];
  return shares;
}

}  // namespace

int64_t Blend::exact_period(std::span<const double> weights) {
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  // The tolerance covers only the rounding error of decimals as binary fractions.
  auto whole = [&](double share) { return std::abs(share - std::round(share)) < 1e-9 && std::round(share) >= 1; };
  for (int64_t slots = 1; slots < kSlots; ++slots)
    if (std::all_of(weights.begin(), weights.end(),
                    [&](double weight) { return whole(weight / sum * static_cast<double>(slots)); }))
      return slots;
  return kSlots;
}

Blend::Blend(std::span<const double> weights, int64_t slots) {
  BUG_IF(weights.empty(), "a blend of nothing");
  for (double weight : weights)
    if (!(weight > 0) || !std::isfinite(weight))
      throw UserError({.got = fmt::format("a data source has weight {}", weight), .expected = "a positive number"});
  if (weights.size() == 1) slots = 1;
  shares_ = shares_of(weights, slots);
  for (size_t i = 0; i < weights.size(); ++i)
    if (shares_[i] == 0)
      throw UserError({.got = fmt::format("data source {} has weight {}, too little beside the others", i, weights[i]),
                       .expected = fmt::format("a share of 1/{} at least", slots)});

  // Each slot goes to the source that is furthest behind its share. A source that has had its whole share is not
  // behind, and some source always is, so the period comes out exactly.
  std::vector<int64_t> taken(weights.size(), 0);
  for (int64_t slot = 0; slot < slots; ++slot) {
    size_t next = 0;
    auto behind = [&](size_t i) { return shares_[i] * (slot + 1) - taken[i] * slots; };
    for (size_t i = 1; i < weights.size(); ++i)
      if (behind(i) > behind(next)) next = i;
    period_.push_back({.source = static_cast<int>(next), .index = taken[next]++});
  }
}

Blend::Pick Blend::at(int64_t k) const {
  const auto slots = std::ssize(period_);
  Pick pick = period_[static_cast<size_t>(k % slots)];
  pick.index += k / slots * shares_[static_cast<size_t>(pick.source)];
  return pick;
}

}  // namespace sextant
