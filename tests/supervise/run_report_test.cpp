// Sums of a report of a made-up history; the class of a hang at the very moment of a limit; lines of launchers at their
// edges.
#include "supervise/run_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "supervise/host_list.h"
#include "supervise/launcher_report.h"

namespace sextant {
namespace {

using namespace std::chrono_literals;

Attempt attempt_of(int64_t number, CauseKind kind, bool trained, const LostSeconds& lost) {
  Attempt attempt{.number = number};
  attempt.started = WallTime(1000s * number), attempt.ended = attempt.started + 250s;
  if (trained) attempt.trained = attempt.started + 5s, attempt.from_step = 10 * number;
  attempt.done_step = 10 * number + 7;
  attempt.cause.kind = kind;
  attempt.lost = lost;
  return attempt;
}

// A hang, a stop that was asked for, a start that failed, and the end.
RunReport made_report() {
  RunReport report;
  report.attempts = {
      attempt_of(1, CauseKind::hang, true, {60, 2, 1, 0, 4}), attempt_of(2, CauseKind::stopped, true, {0, 1, 0, 0, 3}),
      attempt_of(3, CauseKind::run_failed, false, {0.5, 0, 8, 16, 0}), attempt_of(4, CauseKind::finished, true, {})};
  for (const Attempt& attempt : report.attempts) report.lost += attempt.lost;
  report.first_step = 0, report.last_step = 47, report.steps_repeated = 6;
  report.seconds = 1000, report.productive_seconds = 800, report.first_start_seconds = 20, report.end_seconds = 5;
  return report;
}

TEST(RunReports, AddUpWhatWasLost) {
  RunReport report = made_report();
  EXPECT_DOUBLE_EQ(report.lost.sum(), 95.5);
  EXPECT_DOUBLE_EQ(report.lost.detecting, 60.5);
  EXPECT_DOUBLE_EQ(report.lost.ending, 3);
  EXPECT_DOUBLE_EQ(report.lost.waiting, 9);
  EXPECT_DOUBLE_EQ(report.lost.preflight, 16);
  EXPECT_DOUBLE_EQ(report.lost.starting, 7);
  EXPECT_EQ(report.failures(), 3);
  EXPECT_EQ(report.interruptions(), 1);  // the stop saved first, and the third never trained
  EXPECT_DOUBLE_EQ(report.asked_stop_seconds(), 4);
  EXPECT_DOUBLE_EQ(report.other_seconds(), 1000 - 800 - 95.5 - 20);
  EXPECT_DOUBLE_EQ(report.goodput(), 0.8);
  report.productive_seconds = 990;
  EXPECT_EQ(report.other_seconds(), 0);  // clocks of steps and of processes differ by a little
}

TEST(RunReports, TellTheSameAsTextAndJson) {
  const RunReport report = made_report();
  const RunConfig run;
  nlohmann::json json = nlohmann::json::parse(report_json(report, run).dump());
  EXPECT_EQ(json["failures"], 3);
  EXPECT_EQ(json["steps_repeated"], 6);
  EXPECT_EQ(json["last_step"], 47);
  EXPECT_EQ(json["lost"]["detecting"], 60.5);
  EXPECT_EQ(json["lost"]["preflight"], 16);
  EXPECT_EQ(json["goodput"], 0.8);
  ASSERT_EQ(json["attempts"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const nlohmann::json& attempt = json["attempts"][i];
    EXPECT_EQ(attempt["attempt"], i + 1);
    EXPECT_EQ(attempt["seconds"], 250);
    EXPECT_EQ(attempt["done_step"], 10 * (i + 1) + 7);
    EXPECT_EQ(attempt["from_step"].is_null(), i == 2) << "a start that never trained began at no step";
  }
  std::string text = report_text(report, run);
  for (const char* part : {"attempts  4", "steps     0 to 47, 6 done again",
                           "60.5 s detecting, 3.0 s ending, 9.0 s waiting, 16.0 s preflight, 7.0 s starting",
                           "goodput   80.0 %", "outcome   finished"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(LauncherReport, KnowsRankZero) {
  std::optional<LostRank> lost =
      lost_rank_in("mpirun noticed that process rank 0 with PID 0 on node n1 exited on signal 9 (Killed).");
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->rank, 0);
}

// As many hosts as the ranks need, and no more.
TEST(Hosts, TheFirstOnesAreJustEnough) {
  const std::vector<HostSlots> hosts{{"a", 2}, {"b", 3}, {"c", 1}, {"d", 4}};
  for (int64_t ranks = 0; ranks <= 12; ++ranks) {
    std::vector<HostSlots> chosen = first_hosts(hosts, ranks);
    EXPECT_EQ(chosen, std::vector<HostSlots>(hosts.begin(), hosts.begin() + std::ssize(chosen)));
    EXPECT_TRUE(slots_of(chosen) >= ranks || chosen.size() == hosts.size()) << ranks;
    if (!chosen.empty()) {
      EXPECT_LT(slots_of(chosen) - chosen.back().slots, ranks);
    }
  }
}

}  // namespace
}  // namespace sextant
