#include "cost/routed_rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cost/machine_file.h"
#include "cost/planned_target.h"
#include "cost/price.h"
#include "models/presets.h"
#include "run/programs.h"

namespace sextant {

namespace {

LoweredRun two_ranks_of_experts() {
  ModelSpec spec = find_preset("mixtral-8x7b")->spec;
  spec.layers = 1;
  RunConfig run;
  run.mesh = {.dp = 4, .ep = 4};
  run.batch = {.sequences = 4, .microbatch = 1, .seq = 256};
  run.train.eval_every = 0;
  return lower_run(run, spec, planned_target(own_profile()), Checks::none);
}

// Two of eight experts for a token, two on each of four ranks: room for 2·T rows of each rank's tokens on every rank,
// of which T/2 are filled where routing is balanced.
TEST(RoutedRows, ShareOfRowsThatHoldTokens) {
  LoweredRun run = two_ranks_of_experts();
  RoutedRows rows = routed_rows(run.programs.train.front());
  EXPECT_EQ(rows.per_token, 2);
  EXPECT_DOUBLE_EQ(rows.filled, 0.25);
}

// With k draws among p places, p·(1 - (1 - 1/p)^k) differ.
TEST(RoutedRows, CopiesForEachPlace) {
  RoutedRows rows{.per_token = 8};
  EXPECT_NEAR(one_copy_for_each(8, rows, 8), 5.2511, 1e-3);
  rows.groups = 8, rows.keep_groups = 4;  // at most four of eight nodes
  EXPECT_NEAR(one_copy_for_each(8, rows, 8), 4 * (1 - std::pow(0.75, 8)), 1e-9);
}

// A busier rank takes longer, in software that sends and computes exact sizes.
TEST(RoutedRows, ImbalanceTakesLonger) {
  LoweredRun run = two_ranks_of_experts();
  Machine machine = load_machine("h100-sxm");
  SoftwareProfile theirs = own_profile();
  theirs.kernels = Kernels::theirs;
  auto seconds = [&](double imbalance) {
    Pricer pricer(machine, machine.tables, theirs, imbalance);
    double sum = 0;
    for (const Region& region : run.programs.train.front().regions)
      for (const Op& op : region.ops) sum += pricer.price(run.programs.train.front(), op).seconds;
    return sum;
  };
  EXPECT_GT(seconds(2), 1.05 * seconds(1));
}

}  // namespace

}  // namespace sextant
