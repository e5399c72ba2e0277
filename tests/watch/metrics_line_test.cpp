// Lines of metrics.jsonl as a JSON library reads them; what is no object is refused.
#include "watch/metrics_line.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace sextant {
namespace {

void expect_as_library(const std::string& text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  MetricsLine line;
  ASSERT_EQ(line.parse(text), json.is_object()) << text;
  if (!json.is_object()) return;
  size_t numbers = 0, lists = 0;
  for (const auto& [name, value] : json.items()) {
    if (value.is_number() || value.is_boolean()) {
      ++numbers;
      ASSERT_NE(line.number(name), nullptr) << text;
      EXPECT_EQ(*line.number(name), value.is_boolean() ? (value.get<bool>() ? 1.0 : 0.0) : value.get<double>());
    }
    lists += value.is_array() && std::ranges::all_of(value, [](const auto& one) { return one.is_number(); });
  }
  EXPECT_EQ(line.numbers().size(), numbers) << text;
  EXPECT_EQ(line.lists().size(), lists) << text;
}

TEST(MetricsLineParser, ReadsWhatALibraryReads) {
  for (
      const char* text :
      {R"({"step":4,"loss":6.004088878631592,"grad_norm":0.8237596154212952,"lr":0.0,"mfu":null,"update_skipped":true})",
       R"({"a":[1,2.5,-3e-2],"b":[],"c":["x"],"d":[[1]],"non_finite":{"loss":"nan"},"e":"te\"xt\\","f":1})",
       R"( { "spaced" : 1e5 , "list" : [ 1 , 2 ] } )", "{}", R"({"z":-0.0,"n":-12,"e":1E+3,"q":false})"})
    expect_as_library(text);
}

TEST(MetricsLineParser, RefusesWhatALibraryRefuses) {
  for (const char* text : {"",
                           "{",
                           "[]",
                           "1",
                           R"({"a":1)",
                           R"({"a":1,})",
                           R"({"a":01})",
                           R"({"a":1.})",
                           R"({"a":.5})",
                           R"({"a":+1})",
                           R"({"a":nan})",
                           R"({"a":1}x)",
                           R"({"a" 1})",
                           R"({a:1})",
                           R"({"a":[1,]})",
                           R"({"a":tru})",
                           R"({"a":"x)",
                           R"({"a":-})",
                           R"({"a":1e})",
                           "{\"a\":\"\n\"}"})
    expect_as_library(text);
}

TEST(MetricsLineParser, BoundsDepthAndSize) {
  MetricsLine line;
  EXPECT_FALSE(line.parse("{\"a\":" + std::string(100000, '[')));
  ASSERT_TRUE(line.parse(R"({"a":1e999,"b":[1e999]})"));
  EXPECT_TRUE(std::isinf(*line.number("a")));
}

TEST(MetricsLineParser, TheLastOfTwoCounts) {
  MetricsLine line;
  ASSERT_TRUE(line.parse(R"({"a":1,"a":2})"));
  EXPECT_EQ(*line.number("a"), 2);
}

}  // namespace
}  // namespace sextant
