// The published laws against values computed elsewhere from the published constants, to the digits printed there, and
// against the papers' own tables.
#include "laws/laws.h"

#include <gtest/gtest.h>

#include "laws/kaplan.h"
#include "laws/refused.h"
#include "laws/undersized_tradeoff.h"

namespace sextant {
namespace {

// Half a unit of the fifth significant digit, or of the given decimal.
void expect_digits(double value, double printed) {
  EXPECT_NEAR(value / printed, 1, 5.1e-5) << printed;
}
void expect_decimals(double value, double printed, double unit) {
  EXPECT_NEAR(value, printed, 0.51 * unit) << printed;
}

struct OptimumCase {
  ParametricLaw law;
  double compute, params, tokens, loss;
};

TEST(ParametricLaw, OptimaAsComputedElsewhere) {
  const OptimumCase cases[] = {{hoffmann_printed(), 1e19, 2.2796e8, 7.3114e9, 2.98574},
                               {hoffmann_tex(), 1e19, 2.7058e8, 6.1596e9, 2.92163},
                               {besiroglu(), 1e19, 2.6217e8, 6.3572e9, 2.92710},
                               {hoffmann_printed(), 1e21, 1.8242e9, 9.1363e10, 2.32888},
                               {hoffmann_tex(), 1e21, 2.2146e9, 7.5259e10, 2.29539},
                               {besiroglu(), 1e21, 2.7785e9, 5.9985e10, 2.30553},
                               {hoffmann_printed(), 5.76e23, 3.219e10, 2.9823e12, 1.93075},
                               {hoffmann_tex(), 5.76e23, 4.031e10, 2.3815e12, 1.91839},
                               {besiroglu(), 5.76e23, 7.2249e10, 1.3287e12, 1.97444},
                               {hoffmann_printed(), 1e25, 1.1682e11, 1.4267e13, 1.84532},
                               {hoffmann_tex(), 1e25, 1.4835e11, 1.1235e13, 1.83802},
                               {besiroglu(), 1e25, 3.1207e11, 5.3407e12, 1.91173}};
  for (const OptimumCase& c : cases) {
    Optimum best = c.law.optimum(c.compute);
    expect_digits(best.params, c.params);
    expect_digits(best.tokens, c.tokens);
    expect_decimals(*best.loss, c.loss, 1e-5);
    EXPECT_NEAR(best.compute() / c.compute, 1, 1e-12);
  }
}

TEST(ParametricLaw, LossesOfKnownModels) {
  struct Model {
    double params, tokens, printed, refit;
  };
  for (const Model& m : {Model{70e9, 1.4e12, 1.93665, 1.97388}, Model{280e9, 300e9, 1.99326, 1.99961},
                         Model{175e9, 300e9, 2.00229, 2.00854}, Model{6.7e9, 1e12, 2.05467, 2.08654},
                         Model{8.03e9, 15e12, 1.94831, 2.02184}}) {
    expect_decimals(hoffmann_printed().loss(m.params, m.tokens), m.printed, 1e-5);
    expect_decimals(besiroglu().loss(m.params, m.tokens), m.refit, 1e-5);
  }
}

TEST(ParametricLaw, ExponentsAsComputedElsewhere) {
  expect_decimals(hoffmann_printed().split().exponent, 0.4516, 1e-4);
  expect_decimals(hoffmann_tex().split().exponent, 0.4565, 1e-4);
  expect_decimals(besiroglu().split().exponent, 0.5126, 1e-4);
}

TEST(ParametricLaw, NoNeighbourOfTheOptimumIsBetter) {
  for (const ParametricLaw& law : {hoffmann_printed(), hoffmann_tex(), besiroglu()}) {
    Optimum best = law.optimum(3e22);
    for (double factor : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0})
      EXPECT_GT(law.loss(best.params * factor, best.tokens / factor), *best.loss) << law.name << " " << factor;
  }
}

TEST(ParametricLaw, TheOptimumForALossIsTheOneThatHasIt) {
  for (const ParametricLaw& law : {hoffmann_printed(), besiroglu()}) {
    Optimum best = law.optimum(5.76e23), again = law.optimum_for_loss(*best.loss);
    EXPECT_NEAR(again.params / best.params, 1, 1e-9);
    EXPECT_NEAR(again.tokens / best.tokens, 1, 1e-9);
  }
  expect_refused([] { besiroglu().optimum_for_loss(1.8172); }, "irreducible loss, 1.817");
}

TEST(ComputeSplit, InvertsByParametersAndByTokens) {
  for (const Law& law : published_laws())
    for (double compute : {1e18, 5.76e23, 1e28}) {
      Optimum best = law.optimum(compute);
      EXPECT_NEAR(law.split.compute_for_params(best.params) / compute, 1, 1e-9) << law.name;
      EXPECT_NEAR(law.split.compute_for_tokens(best.tokens) / compute, 1, 1e-9) << law.name;
      EXPECT_NEAR(best.compute() / compute, 1, 1e-9) << law.name;
    }
}

TEST(Hoffmann, EnvelopeGoesThroughThePapersTable) {
  struct Row {
    double params, flops, tokens;
  };
  ComputeSplit split = hoffmann_envelope();
  EXPECT_NEAR(split.exponent, 0.50, 0.005);
  for (const Row& row : {Row{400e6, 1.92e19, 8.0e9}, Row{1e9, 1.21e20, 20.2e9}, Row{10e9, 1.23e22, 205.1e9},
                         Row{175e9, 3.85e24, 3.7e12}, Row{280e9, 9.90e24, 5.9e12}, Row{520e9, 3.43e25, 11.0e12},
                         Row{1e12, 1.27e26, 21.2e12}, Row{10e12, 1.30e28, 216.2e12}}) {
    EXPECT_NEAR(split.params_at(row.flops) / row.params, 1, 0.015) << row.params;
    EXPECT_NEAR(split.tokens_at(row.flops) / row.tokens, 1, 0.02) << row.params;
  }
}

// The paper's figure 3 names 63 B parameters for Gopher's budget.
TEST(Hoffmann, IsoFlopAtGophersBudget) {
  ComputeSplit split = hoffmann_isoflop();
  EXPECT_NEAR(split.exponent, 0.49, 0.005);
  EXPECT_NEAR(split.params_at(5.76e23), 63e9, 0.5e9);
}

TEST(Kaplan, LossOfComputeIsAsStated) {
  EXPECT_DOUBLE_EQ(kaplan_loss_of_compute(3.1e8 * kPetaflopDay), 1);
}

// The paper gives D = 2e10 tokens for 1 PF-day at the critical batch, beside N = 1.3e9.
TEST(Kaplan, OptimumAtOnePetaflopDay) {
  ComputeSplit split = kaplan_split();
  EXPECT_DOUBLE_EQ(split.exponent, 0.73);
  EXPECT_NEAR(split.params_at(2 * kPetaflopDay), 1.3e9, 1);
  EXPECT_NEAR(split.tokens_at(2 * kPetaflopDay), 2e10, 0.25e10);
}

TEST(CerebrasGpt, ValuesAsComputedElsewhere) {
  expect_decimals(cerebras_gpt_loss(2.3e22), 1.57961, 1e-5);
  expect_decimals(cerebras_gpt_loss(1e24), 1.31918, 1e-5);
}

struct SmallerCase {
  ParametricLaw law;
  double size, tokens, percent;
};

TEST(UndersizedTradeoff, ValuesAsComputedElsewhere) {
  const SmallerCase cases[] = {{hoffmann_printed(), 0.75, 1.3713, 2.85},  {hoffmann_printed(), 0.5, 2.4161, 20.80},
                               {hoffmann_printed(), 0.3, 6.8512, 105.54}, {hoffmann_printed(), 0.25, 11.5446, 188.61},
                               {besiroglu(), 0.75, 1.3780, 3.35},         {besiroglu(), 0.5, 2.5186, 25.93},
                               {besiroglu(), 0.3, 8.7104, 161.31},        {besiroglu(), 0.25, 17.8613, 346.53}};
  for (const SmallerCase& c : cases) {
    UndersizedTradeoff row = *undersized_tradeoff(c.law, c.size);
    expect_decimals(row.tokens, c.tokens, 1e-4);
    expect_decimals(100 * row.overhead, c.percent, 1e-2);
  }
  expect_decimals(size_limit(hoffmann_printed()), 0.0965, 1e-4);
  expect_decimals(size_limit(besiroglu()), 0.1464, 1e-4);
}

TEST(UndersizedTradeoff, KeepsTheLossAtAnyCompute) {
  for (double compute : {1e20, 1e24})
    for (const UndersizedTradeoff& row : undersized_tradeoff_table(besiroglu())) {
      Optimum best = besiroglu().optimum(compute);
      EXPECT_NEAR(besiroglu().loss(row.size * best.params, row.tokens * best.tokens), *best.loss, 1e-9) << row.size;
    }
}

TEST(UndersizedTradeoff, ThereIsNothingAtTheLimit) {
  ParametricLaw law = besiroglu();
  EXPECT_FALSE(undersized_tradeoff(law, size_limit(law) * 0.999));
  EXPECT_TRUE(undersized_tradeoff(law, size_limit(law) * 1.001));
}

}  // namespace
}  // namespace sextant
