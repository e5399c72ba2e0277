#include "laws/undersized_tradeoff.h"

namespace sextant {

double size_limit(const ParametricLaw& law) {
  const LawConstants& c = law.constants;
  return std::pow(1 + c.alpha / c.beta, -1 / c.alpha);
}

std::optional<UndersizedTradeoff> undersized_tradeoff(const ParametricLaw& law, double size) {
  const LawConstants& c = law.constants;
  // The data term shrinks by what the model term grows; at the optimum model term / data term = beta / alpha.
  double left = 1 - (std::pow(size, -c.alpha) - 1) * c.beta / c.alpha;
  if (!(left > 0)) return std::nullopt;
  double tokens = std::pow(left, -1 / c.beta);
  return UndersizedTradeoff{size, tokens, size * tokens - 1};
}

std::vector<UndersizedTradeoff> undersized_tradeoff_table(const ParametricLaw& law) {
  std::vector<UndersizedTradeoff> rows;
  for (double size : {1.5, 1.0, 0.75, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15})
    if (std::optional<UndersizedTradeoff> row = undersized_tradeoff(law, size); row && row->overhead < 9)
      rows.push_back(*row);
  return rows;
}

}  // namespace sextant
