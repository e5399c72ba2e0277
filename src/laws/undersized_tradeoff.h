// A smaller model trained longer to the same loss (de Vries, "Go smol or go home", 2023). Sizes, tokens and compute are
// factors of those at the law's optimum; under a law of Chinchilla's form they do not depend on the compute.
#pragma once

#include <optional>
#include <vector>

#include "laws/chinchilla.h"

namespace sextant {

struct UndersizedTradeoff {
  double size = 1;      // of the model; above 1 it is larger and trained for less
  double tokens = 1;    // of training
  double overhead = 0;  // compute beyond the optimum's: 0.2 is 20 % more
};

// A model of this size or less never reaches the loss, however long it trains.
double size_limit(const ParametricLaw& law);

// Nothing at or below the limit.
std::optional<UndersizedTradeoff> undersized_tradeoff(const ParametricLaw& law, double size);

// From 1.5 downwards, as long as it takes no more than ten times the compute.
std::vector<UndersizedTradeoff> undersized_tradeoff_table(const ParametricLaw& law);

}  // namespace sextant
