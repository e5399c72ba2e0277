// A team of threads does every task once, however many threads share however few cores.
#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

namespace sextant {
namespace {

TEST(ThreadTeam, DoesEveryTaskOnce) {
  for (int threads : {1, 2, 9}) {
    ThreadTeam team(threads);
    ASSERT_EQ(team.size(), threads);
    for (int64_t tasks : {0, 1, 2, 7, 100}) {
      for (int round = 0; round < 300; ++round) {
        // Each round must see the writes of the round before, whichever threads ran it.
        std::vector<int> done(static_cast<size_t>(tasks), 0);
        team.parallel_for(tasks, [&](int64_t task, int) { ++done[static_cast<size_t>(task)]; });
        team.parallel_for(tasks, [&](int64_t task, int) { ++done[static_cast<size_t>(task)]; });
        ASSERT_EQ(done, std::vector<int>(static_cast<size_t>(tasks), 2)) << threads << " threads, round " << round;
      }
    }
  }
}

TEST(ThreadTeam, NoTwoTasksAtOnceHaveOneThread) {
  ThreadTeam team(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<int> twice{0};
  for (int round = 0; round < 200; ++round)
    team.parallel_for(16, [&](int64_t, int thread) {
      if (inside[static_cast<size_t>(thread)].fetch_add(1) != 0) ++twice;
      inside[static_cast<size_t>(thread)].fetch_sub(1);
    });
  EXPECT_EQ(twice, 0);
}

// Workers that have gone to sleep in between.
// The last parallel_for may be over, and the end of the team be there, before a worker has looked at either.
TEST(ThreadTeam, EndsWithWorkersThatWakeLate) {
  std::atomic<int> done{0};
  constexpr int kTeams = 2000;
  for (int round = 0; round < kTeams; ++round) {
    ThreadTeam team(4);
    team.parallel_for(2, [&](int64_t, int) { ++done; });
  }
  EXPECT_EQ(done, 2 * kTeams);
}

TEST(ThreadTeam, IsWokenAfterARest) {
  ThreadTeam team(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    std::vector<int64_t> squares(1000, 0);
    team.parallel_for(1000, [&](int64_t task, int) { squares[static_cast<size_t>(task)] = task * task; });
    EXPECT_EQ(std::accumulate(squares.begin(), squares.end(), int64_t{0}), 332833500);
  }
}

}  // namespace
}  // namespace sextant
