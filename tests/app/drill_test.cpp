// Faults on purpose in runs that go back: each strikes once, and what is said of a spike is what follows.
#include <gtest/gtest.h>

#include "expectations.h"
#include "run_fixture.h"

namespace sextant {
namespace {

class Drill : public RunVerb {
 protected:
  Outcome rewinding(const std::string& extra) {
    return run_command(
        arguments("train",
                  "train.steps=16 train.non_finite_steps=5 train.spike.action=rewind train.spike.window=8 "
                  "train.spike.rewind_steps=2 train.spike.skip_steps=1 " +
                      extra));
  }
  std::vector<std::string> details_of(const std::string& kind, const std::string& field) const {
    std::vector<std::string> found;
    std::istringstream lines(read_file(place_ / "run/events.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json event = nlohmann::json::parse(line);
      if (event["event"] == kind) found.push_back(event.value(field, ""));
    }
    return found;
  }
};

TEST_F(Drill, AStepThatIsMadeAgainAfterARewindIsLeftAlone) {
  Outcome outcome = rewinding("--inject nan@12");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(events("spike"), 1) << outcome.output;
  EXPECT_EQ(events("rewind"), 1) << outcome.output;
  EXPECT_EQ(events("skipped_step"), 1) << outcome.output;
}

// Steps before the first of it are made again, too.
TEST_F(Drill, FaultsOfSeveralStepsEndWithARewind) {
  Outcome outcome = rewinding("train.check_gemms=0 --inject disk_full=4@11 --inject nan@12");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(events("rewind"), 1) << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "No space left on device"), 0u) << outcome.output;
}

TEST_F(Drill, ASpikeSaysThatNoRewindIsLeft) {
  Outcome outcome = rewinding("train.spike.most_rewinds=1 --inject nan@10 --inject nan@14");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(details_of("spike", "action"), (std::vector<std::string>{"rewind", "none"})) << outcome.output;
  EXPECT_EQ(events("rewind"), 1) << outcome.output;
}

}  // namespace
}  // namespace sextant
