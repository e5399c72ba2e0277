// A run whose directory is removed or moved while it goes on ends by a failure, and says so: nothing is told of that is
// not there.
#include <gtest/gtest.h>

#include "expectations.h"
#include "run_fixture.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

class RemovedRun : public RunVerb {
 protected:
  // Disturbed once it has done two steps; a step takes 50 ms and more.
  Outcome disturbed(const std::string& verb, const std::string& extra, const std::function<void()>& disturb) {
    StartedCommand run(
        fmt::format("exec {} {}", checkout::kBinary, arguments(verb, "train.steps=60 --inject slow=50@1 " + extra)),
        place_ / "log");
    EXPECT_TRUE(comes_true([&] { return lines_in(place_ / "run/metrics.jsonl") >= 2; })) << run.output();
    disturb();
    Outcome outcome;
    outcome.code = run.wait();
    outcome.output = run.output();
    return outcome;
  }
};

TEST_F(RemovedRun, EndsByAFailure) {
  for (const char* verb : {"train", "run"})
    for (const char* saves : {"checkpoint.every=0", "checkpoint.every=2"}) {
      fs::remove_all(place_ / "run");
      Outcome outcome = disturbed(verb, saves, [&] {
        while (fs::exists(place_ / "run")) {
          std::error_code busy;  // it writes while we remove
          fs::remove_all(place_ / "run", busy);
        }
      });
      EXPECT_EQ(outcome.code, 3) << verb << " " << saves << "\n" << outcome.output;
      EXPECT_EQ(outcome.output.find("model    "), std::string::npos) << outcome.output;
      EXPECT_FALSE(fs::exists(place_ / "run/step-000060"));
    }
}

TEST_F(RemovedRun, IsSaidAlsoWhereItWasOnlyMoved) {
  Outcome outcome = disturbed("train", "checkpoint.every=0", [&] { fs::rename(place_ / "run", place_ / "elsewhere"); });
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  expect_words(outcome.output, {"was removed or moved while the run was writing there"});
  EXPECT_FALSE(fs::exists(place_ / "run"));
}

TEST_F(RemovedRun, ItsMetricsAloneAreMissed) {
  Outcome outcome = disturbed("train", "", [&] { fs::remove(place_ / "run/metrics.jsonl"); });
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  expect_words(outcome.output, {"metrics.jsonl: was removed or moved while the run was writing to it"});
}

}  // namespace
}  // namespace sextant
