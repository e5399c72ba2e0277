// Known runs beside what a search finds for them.
#include "validate/known_run_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace sextant {
namespace {

TEST(KnownRunSearchTest, VerdictsAreByTheInterval) {
  KnownRunSearch one;
  one.interval = {.share = 0.8, .log_half = std::log(1.1)};
  one.published.seconds = 10;
  auto verdict = [&](double found) {
    one.found.seconds = found;
    return one.verdict();
  };
  EXPECT_EQ(verdict(9.9), SearchVerdict::faster);
  EXPECT_EQ(verdict(10), SearchVerdict::same);
  EXPECT_EQ(verdict(10.9), SearchVerdict::equal);
  EXPECT_EQ(verdict(11.1), SearchVerdict::slower);
}

// On eight devices, where the published layout is among those that are looked at.
TEST(KnownRunSearchTest, FindsWhatIsNoSlowerThanThePublishedLayout) {
  IntervalModel intervals = load_interval_model();
  std::vector<KnownRun> runs = read_known_runs("playbook-3b-8");
  std::vector<KnownRunSearch> results =
      search_known_runs({.runs = runs,
                         .intervals = intervals,
                         .limits = LayoutLimits({"pp=2", "tp=1", "microbatch=2", "recompute=none"}, "")});
  ASSERT_EQ(results.size(), 1u);
  const KnownRunSearch& found = results.front();
  EXPECT_LE(found.ratio(), 1 + 1e-6);
  EXPECT_EQ(found.found.choice.devices(), 8);
  // Predicted as `published` predicts it.
  KnownRunResult planned = plan_known_runs(read_known_runs("playbook-3b-8"), intervals).front();
  EXPECT_NEAR(found.published.seconds, planned.fitted_s, 1e-9 * planned.fitted_s);
  nlohmann::json json = nlohmann::json::parse(known_run_searches_json(results))["published"][0];
  EXPECT_EQ(json["verdict"], name_of(found.verdict()));
  EXPECT_EQ(json["found"]["overrides"], found.found.overrides);
}

}  // namespace
}  // namespace sextant
