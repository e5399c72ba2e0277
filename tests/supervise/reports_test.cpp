// Facts that are parsed from the output of mpirun and of doctor.
#include <gtest/gtest.h>

#include "supervise/launcher_report.h"
#include "supervise/preflight.h"

namespace sextant {
namespace {

TEST(LauncherReport, NamesTheRankThatASignalEnded) {
  std::optional<LostRank> lost = lost_rank_in(
      "step 3\n-----\nPrimary job  terminated normally, but 1 process returned\n"
      "mpirun noticed that process rank 12 with PID 0 on node n-2.site exited on signal 9 (Killed).\n"
      "mpirun noticed that process rank 3 with PID 0 on node n1 exited on signal 9 (Killed).\n");
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->rank, 12);
  EXPECT_EQ(lost->host, "n-2.site");
}

TEST(LauncherReport, SaysNothingOfOtherLines) {
  for (const char* text : {"", "\n", "mpirun noticed that process rank x with PID 0 on node n exited on signal 9",
                           "mpirun noticed that process rank 99999999999 with PID 0 on node n exited on signal 9",
                           "mpirun noticed that process rank -1 with PID 0 on node n exited on signal 9",
                           "mpirun noticed that process rank 1 with PID 0 on node n\n exited on signal 9",
                           " exited on signal  noticed that process rank 1 with PID "})
    EXPECT_FALSE(lost_rank_in(text)) << text;
}

TEST(Preflight, FindsTheHostThatIsMeant) {
  std::vector<PreflightFinding> findings = preflight_findings(
      "mpirun: a word\n{\"findings\":[{\"group\":\"burn\",\"name\":\"corruption\",\"status\":\"failure\","
      "\"found\":\"a sum differs\",\"advice\":\"take it out\",\"where\":\"n10; ranks 1, 3 (n2)\"},"
      "{\"group\":\"clock\",\"name\":\"sync\",\"status\":\"warning\",\"found\":\"none\"},"
      "{\"group\":\"gpu\",\"name\":\"no GPU\",\"status\":\"ok\"}]}\n");
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_TRUE(findings[0].is_failure);
  EXPECT_EQ(findings[0].text, "failure: burn, corruption: a sum differs, on n10; ranks 1, 3 (n2); take it out");
  EXPECT_TRUE(is_about(findings[0], "n10"));
  EXPECT_TRUE(is_about(findings[0], "n2"));
  EXPECT_FALSE(is_about(findings[0], "n1"));
  EXPECT_FALSE(is_about(findings[0], ""));
  EXPECT_FALSE(findings[1].is_failure);
  EXPECT_FALSE(is_about(findings[1], "n2"));
}

TEST(Preflight, TakesNothingFromOtherText) {
  for (const char* text : {"", "}{", "{", "{}", "[1]", "{\"findings\":3}", "{\"findings\":[3,{\"status\":7}]}"})
    EXPECT_TRUE(preflight_findings(text).empty()) << text;
}

}  // namespace
}  // namespace sextant
