// A run whose rank does not come back ends with the code of what failed first.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "comm/ranks.h"
#include "comm/transport.h"

namespace sextant {
namespace {

void end_with_a_rank_left(const std::function<void()>& fail) {
  Launch launch{.end_process = [](const std::string&, ExitCode code) { std::_Exit(number_of(code)); }};
  run_ranks(launch, {.ranks = 2, .timeout = std::chrono::seconds(60)}, [&](const RankContext& context) {
    if (context.rank == 0) fail();
    std::this_thread::sleep_for(std::chrono::seconds(60));
  });
}

TEST(RanksThatDoNotComeBackDeathTest, LeaveTheCodeOfTheFirstFailure) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_with_a_rank_left([] { throw UserError(Complaint{.got = "bad"}); }), testing::ExitedWithCode(2), "");
  EXPECT_EXIT(end_with_a_rank_left([] { throw RunError("", "bad", "", ExitCode::corruption); }),
              testing::ExitedWithCode(9), "");
  EXPECT_EXIT(end_with_a_rank_left([] { throw RunError("", "bad", "", ExitCode::rank_lost); }),
              testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace sextant
