#include "laws/smaller_longer.h"

namespace sextant {

double size_limit(const ParametricLaw& law) {
  const LawConstants& c = law.constants;
  return std::pow(1 + c.alpha / c.beta, -1 / c.alpha);
}

std::optional<SmallerLonger> smaller_longer(const ParametricLaw& law, double size) {
  const LawConstants& c = law.constants;
  // The data term shrinks by what the model term grows; at the optimum model term / data term = beta / alpha.
  double left = 1 - (std::pow(size, -c.alpha) - 1) * c.beta / c.alpha;
  if (!(left > 0)) return std::nullopt;
  double tokens = std::pow(left, -1 / c.beta);
  return SmallerLonger{size, tokens, size * tokens - 1};
}

std::vector<SmallerLonger> smaller_longer_table(const ParametricLaw& law) {
  std::vector<SmallerLonger> rows;
  for (double size : {1.5, 1.0, 0.75, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15})
    if (std::optional<SmallerLonger> row = smaller_longer(law, size); row && row->overhead < 9) rows.push_back(*row);
  return rows;
}

}  // namespace sextant
