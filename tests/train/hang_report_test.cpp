// A hang and a slow rank in words: the chain of waits ends at the rank that is late, with what its thread does; and of
// ranks that do the same work the one that takes longer is named, with the likely reason.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <functional>

#include "base/thread_probe.h"
#include "train/health/hang_report.h"
#include "train/health/straggler.h"

namespace sextant {
namespace {

constexpr int64_t kNow = 1'000'000'000;

LastBeat beat(int rank, int waiting_for, int64_t sequence, int64_t waited_ms = 5000) {
  return {.rank = rank,
          .host = "elsewhere",
          .time = {},
          .state = "running",
          .reason = {},
          .pid = 1,
          .snapshot = {.step = 7,
                       .action = "B 0 1",
                       .place = "grad.w (all_reduce over dp)",
                       .beside = {},
                       .waiting_for = waiting_for,
                       .sequence = sequence,
                       .waiting_since_ms = waiting_for < 0 ? 0 : kNow - waited_ms},
          .thread = 0,
          .time_ms = kNow - 200};
}

TEST(HangReports, FollowTheWaitsToTheRankThatIsLate) {
  std::optional<HangReport> report =
      hang_report({beat(0, 3, 90), beat(1, 0, 90, 4000), beat(2, -1, 80), beat(3, 2, 90, 4500)}, kNow);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->late_rank, 2);
  ASSERT_EQ(report->chain.size(), 3u);
  EXPECT_EQ(
      report->chain[0],
      "rank 0 on elsewhere has waited for 5.0 s for rank 3, in step 7, B 0 1, at grad.w (all_reduce over dp) (op 90)");
  EXPECT_NE(report->chain[1].find("rank 3 on elsewhere has waited for 4.5 s for rank 2"), std::string::npos);
  EXPECT_NE(report->chain[2].find("rank 2 on elsewhere is late"), std::string::npos);
  RunEvent event = report->event();
  EXPECT_EQ(event.kind, EventKind::hang);
  EXPECT_EQ(event.details.integer("late_rank"), 2);
}

TEST(HangReports, ARankThatNoLongerBeatsIsLateWhateverItWroteLast) {
  LastBeat silent = beat(1, 0, 80, 9000);
  silent.time_ms = kNow - 20'000;
  std::optional<HangReport> report = hang_report({beat(0, 1, 90), silent}, kNow);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->late_rank, 1);
  EXPECT_NE(report->chain.back().find("no heartbeat for 20.0 s"), std::string::npos) << report->text();
}

TEST(HangReports, ARankThatWasEndedMeanwhileIsNotTheLateOne) {
  LastBeat ended = beat(0, 2, 90, 9000);
  ended.host = own_host_name();
  ended.pid = ended.thread = -1;  // gone
  ended.state = "ended";
  std::optional<HangReport> report = hang_report({ended, beat(1, 0, 90), beat(2, -1, 80)}, kNow);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->late_rank, 2) << report->text();
  EXPECT_EQ(report->chain.size(), 2u) << report->text();
}

TEST(HangReports, OfRanksThatWaitForEachOtherTheOneBehindIsLate) {
  std::optional<HangReport> report = hang_report({beat(0, 1, 90), beat(1, 0, 88)}, kNow);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->late_rank, 1);
}

TEST(HangReports, NobodyIsLateWhereNobodyWaits) {
  EXPECT_FALSE(hang_report({beat(0, -1, 90), beat(1, -1, 90)}, kNow));
  EXPECT_FALSE(hang_report({}, kNow));
}

TEST(HangReports, SayWhatAProcessOfThisHostDoes) {
  pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  LastBeat late = beat(1, 0, 80);
  late.host = own_host_name();
  late.pid = late.thread = child;
  auto text = [&] { return hang_report({beat(0, 1, 90), late}, kNow)->chain.back(); };
  ::kill(child, SIGSTOP);
  for (int tries = 0; tries < 500 && !probe_thread(child, child)->is_stopped(); ++tries) ::usleep(10'000);
  EXPECT_NE(text().find("is stopped by a signal (SIGSTOP)"), std::string::npos) << text();
  ::kill(child, SIGCONT);
  for (int tries = 0; tries < 500 && probe_thread(child, child)->state != 'S'; ++tries) ::usleep(10'000);
  EXPECT_NE(probe_thread(child, child)->text().find("sleeps"), std::string::npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_NE(text().find("is gone"), std::string::npos) << text();
}

RankTimes times(double waited, double cpu) {
  return {.step = 0.1, .waited = waited, .cpu = cpu};
}

TEST(Stragglers, AreNamedWithTheirReason) {
  RankTimes peer = times(0.08, 0.02), slow = times(0.01, 0.02);
  auto reason = [&](RankTimes late) {
    std::optional<Straggler> found = find_straggler({peer, late, peer}, {0, 0, 0});
    EXPECT_TRUE(found && found->rank == 1);
    return found ? name_of(found->reason) : "none";
  };
  EXPECT_EQ(reason(slow), "asleep");
  slow.cpu = 0.085;
  EXPECT_EQ(reason(slow), "slow compute");
  slow.blocks_read = 100;
  slow.cpu = 0.02;
  EXPECT_EQ(reason(slow), "disk");
  slow.major_faults = 50;
  EXPECT_EQ(reason(slow), "page faults");
  slow.run_delay = 0.06;
  EXPECT_EQ(reason(slow), "no core");
  slow.throttled = 0.06;
  EXPECT_EQ(reason(slow), "throttled");
  slow.input = 0.06;
  EXPECT_EQ(reason(slow), "slow input");
}

TEST(Stragglers, AreComparedWithRanksOfTheSameWork) {
  RankTimes little = times(0.08, 0.02), much = times(0.01, 0.09);
  EXPECT_FALSE(find_straggler({little, much}, {0, 1}));  // two stages of a pipeline
  EXPECT_FALSE(find_straggler({little, little, little}, {0, 0, 0}));
  EXPECT_FALSE(find_straggler({times(0.08, 0.02), times(0.072, 0.02)}, {0, 0}));  // within a tenth of the step
  EXPECT_TRUE(find_straggler({little, much}, {0, 0}));
}

// As measured of a process that is stopped and let go on: both ranks are off their cores for most of their own work.
TEST(Stragglers, AreNoneWhereAllAreStopped) {
  RankTimes hit_more{.step = 0.2, .waited = 0.006, .cpu = 0.0065}, hit_less{.step = 0.2, .waited = 0.126, .cpu = 0.006};
  EXPECT_FALSE(find_straggler({hit_more, hit_less}, {0, 0}));
  hit_less.cpu = 0.07;  // its peer works all the time
  EXPECT_TRUE(find_straggler({hit_more, hit_less}, {0, 0}));
}

// How often one is told in some looks, of which `slow` says the times of rank 1.
int times_told(int looks, const std::function<RankTimes(int look)>& slow) {
  StragglerWatch watch;
  RankTimes peer = times(0.08, 0.02);
  int told = 0;
  for (int look = 0; look < looks; ++look) told += watch.judge({peer, slow(look), peer}, {0, 0, 0}) ? 1 : 0;
  return told;
}

TEST(Stragglers, AreToldOnceThoughALookMissesThem) {
  RankTimes peer = times(0.08, 0.02), late = times(0.01, 0.02);
  EXPECT_EQ(times_told(1, [&](int) { return late; }), 0);
  EXPECT_EQ(times_told(2, [&](int) { return late; }), 1);
  EXPECT_EQ(times_told(40, [&](int look) { return look % 4 == 3 ? peer : late; }), 1);
  EXPECT_EQ(times_told(20, [&](int look) { return look / 5 == 1 ? peer : late; }), 2);  // well for five looks
}

TEST(Stragglers, AreToldLaterWhereOtherProgramsWantTheCores) {
  RankTimes late = times(0.01, 0.02);
  late.run_delay = 0.07;
  late.crowding = 3;
  EXPECT_EQ(times_told(19, [&](int) { return late; }), 0);
  EXPECT_EQ(times_told(20, [&](int) { return late; }), 1);
  late.crowding = 1;
  EXPECT_EQ(times_told(2, [&](int) { return late; }), 1);
}

}  // namespace
}  // namespace sextant
