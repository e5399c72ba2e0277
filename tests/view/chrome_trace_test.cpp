#include "view/chrome_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sextant {
namespace {

// Read back by a JSON parser that is not ours.
nlohmann::json events_of(const Trace& trace) {
  return nlohmann::json::parse(chrome_trace(trace)).at("traceEvents");
}

std::vector<nlohmann::json> of_kind(const nlohmann::json& events, const std::string& kind) {
  std::vector<nlohmann::json> found;
  for (const nlohmann::json& event : events)
    if (event.at("ph") == kind) found.push_back(event);
  return found;
}

Trace some_trace() {
  Trace trace(3);
  trace[0] = {.path = "layers.0.qkv", .name = "linear", .start_s = 1000.5, .end_s = 1000.502};
  trace[0].flops = 4e9;
  trace[0].step = 7;
  trace[1] = {.path = "layers.0.moved", .name = "redistribute", .start_s = 1000.501, .end_s = 1000.504};
  trace[1].lane = "comm";
  trace[1].bytes = 6000000;
  trace[2] = {.path = "a \"b\\\n", .name = "add", .start_s = 1000.5001, .end_s = 1000.5002};
  trace[2].rank = 3;
  return trace;
}

TEST(ChromeTrace, TimesCountFromTheFirstEventInMicroseconds) {
  auto events = of_kind(events_of(some_trace()), "X");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_NEAR(events[0].at("ts").get<double>(), 0, 1e-3);
  EXPECT_NEAR(events[0].at("dur").get<double>(), 2000, 1e-3);
  EXPECT_NEAR(events[1].at("ts").get<double>(), 1000, 1e-3);
  EXPECT_NEAR(events[2].at("ts").get<double>(), 100, 1e-3);
}

TEST(ChromeTrace, RanksAreProcessesAndLanesTheirRows) {
  auto events = events_of(some_trace());
  auto work = of_kind(events, "X");
  EXPECT_EQ(work[0].at("pid"), 0);
  EXPECT_EQ(work[2].at("pid"), 3);
  EXPECT_NE(work[0].at("tid"), work[1].at("tid"));
  std::map<std::pair<int, int>, std::string> rows;
  for (const auto& name : of_kind(events, "M"))
    if (name.at("name") == "thread_name") rows[{name.at("pid"), name.at("tid")}] = name.at("args").at("name");
  EXPECT_EQ(rows.size(), 3u);
  EXPECT_EQ((rows[{0, work[1].at("tid").get<int>()}]), "comm");
  EXPECT_EQ((rows[{3, work[2].at("tid").get<int>()}]), "compute");
}

TEST(ChromeTrace, ArgumentsTellPathStepAndRate) {
  auto work = of_kind(events_of(some_trace()), "X");
  EXPECT_EQ(work[0].at("name"), "linear");
  EXPECT_EQ(work[0].at("args").at("path"), "layers.0.qkv");
  EXPECT_EQ(work[0].at("args").at("step"), 7);
  EXPECT_NEAR(work[0].at("args").at("TFLOP/s").get<double>(), 2, 1e-2);
  EXPECT_FALSE(work[0].at("args").contains("GB/s"));
  EXPECT_NEAR(work[1].at("args").at("GB/s").get<double>(), 2, 1e-2);
  EXPECT_EQ(work[2].at("args").at("path"), "a \"b\\\n");
}

TEST(ChromeTrace, AnEmptyTraceIsOneToo) {
  EXPECT_TRUE(events_of({}).empty());
}

}  // namespace
}  // namespace sextant
