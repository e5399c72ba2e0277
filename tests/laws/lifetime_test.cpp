#include "laws/lifetime.h"

#include <gtest/gtest.h>

#include "laws/refused.h"

namespace sextant {
namespace {

// Tokens for a loss, found by halving, not by the law's inverse.
double tokens_by_bisection(const ParametricLaw& law, double params, double loss) {
  double low = 0, high = 100;  // log tokens
  for (int i = 0; i < 200; ++i) {
    double middle = (low + high) / 2;
    (law.loss(params, std::exp(middle)) > loss ? low : high) = middle;
  }
  return std::exp(high);
}

TEST(Lifetime, TheCheapestIsCheaperThanAnyOnAFineGrid) {
  ParametricLaw law = besiroglu();
  for (double inference : {1e11, 1e12, 1e13, 1e15}) {
    double loss = *law.optimum(5.76e23).loss;
    Lifetime found = cheapest_lifetime(law, loss, inference);
    EXPECT_NEAR(found.loss, loss, 1e-9);
    double least = 1e300;
    for (double log_params = std::log(1e9); log_params < std::log(1e12); log_params += 0.002) {
      double params = std::exp(log_params);
      if (law.constants.E + law.constants.A * std::pow(params, -law.constants.alpha) >= loss) continue;
      least = std::min(least, params * (6 * tokens_by_bisection(law, params, loss) + 2 * inference));
    }
    EXPECT_LE(found.total(), least * (1 + 1e-9));
    EXPECT_NEAR(found.total() / least, 1, 1e-5) << inference;
  }
}

TEST(Lifetime, TheBestForATotalSpendsItAndBeatsItsNeighbours) {
  ParametricLaw law = hoffmann_tex();
  Lifetime found = best_lifetime(law, 2e24, 1e13);
  EXPECT_NEAR(found.total(), 2e24, 1e18);
  for (double factor : {0.7, 0.95, 1.05, 1.4}) {
    double params = found.params * factor, tokens = (2e24 / params - 2e13) / 6;
    EXPECT_GT(law.loss(params, tokens), found.loss) << factor;
  }
}

TEST(Lifetime, ServingNothingChangesNothing) {
  ParametricLaw law = besiroglu();
  LifetimeComparison comparison = compare_lifetimes(law, 1e22, 0);
  EXPECT_NEAR(comparison.cheapest.params / comparison.compute_optimal.params, 1, 1e-9);
  EXPECT_NEAR(comparison.best.params / comparison.compute_optimal.params, 1, 1e-3);
  EXPECT_NEAR(comparison.saving(), 0, 1e-9);
}

// Figure 1 of Sardana et al.: who wants the quality of a 13 B model and expects 2 T tokens of inference saves 17 %, or
// 1.7e22 FLOPs, with one of 7 B. Their constants are close to those of Hoffmann's TeX.
TEST(Lifetime, ThePublishedExample) {
  ParametricLaw law = hoffmann_tex();
  LifetimeComparison comparison = compare_lifetimes(law, law.split().compute_for_params(13e9), 2e12);
  EXPECT_NEAR(comparison.compute_optimal.params, 13e9, 1);
  EXPECT_NEAR(comparison.cheapest.params, 7e9, 0.5e9);
  EXPECT_NEAR(comparison.saving(), 0.17, 0.01);
  EXPECT_NEAR(comparison.compute_optimal.total() - comparison.cheapest.total(), 1.7e22, 0.1e22);
}

TEST(Lifetime, LossesOutOfReachAreRefused) {
  expect_refused([] { cheapest_lifetime(besiroglu(), 1.5, 1e12); }, "no model reaches a loss of 1.5");
}

}  // namespace
}  // namespace sextant
