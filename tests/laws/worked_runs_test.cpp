// Worked cases of a run's arithmetic that economics_test.cpp (A1, A4, A5, A12) and laws_test.cpp do not have.
#include <gtest/gtest.h>

#include "laws/economics.h"

namespace sextant {
namespace {

// Model Lab: 7 B parameters on 1 T tokens, on nodes of eight A100s at 35 % of their peak and $40.96 an hour.
TEST(WorkedRuns, ModelLabsPrice) {
  double flops_per_node_second = 8 * 312e12 * 0.35, tokens_per_step = 4e6;
  RunEconomicsInput run{.step_seconds = 6 * 7e9 * tokens_per_step / flops_per_node_second,
                        .tokens_per_step = tokens_per_step,
                        .token_budget = 1e12,
                        .devices = 8,
                        .price_per_device_hour = 40.96 / 8,
                        .device_mtbf_hours = 1e15};
  EXPECT_NEAR(*economics_of(run).cost, 547'008.5, 0.1);
  // There, machines never fail and nothing is ever saved; on eight devices that is nearly so.
  run.device_mtbf_hours = 0;
  run.checkpoint_seconds = 5, run.restart_seconds = 600;
  EXPECT_GT(*economics_of(run).cost, 547'008.5);
  EXPECT_LT(*economics_of(run).cost, 1.001 * 547'008.5);
  // On 1,024 they fail all the time: the same device-hours of work cost measurably more.
  run.devices *= 128, run.step_seconds /= 128;
  EXPECT_GT(*economics_of(run).cost, 1.001 * 547'008.5);
}

}  // namespace
}  // namespace sextant
