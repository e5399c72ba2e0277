#include "view/timeline_svg.h"
#include "schedule/schedules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace sextant {
namespace {

TimedSchedule timed(std::string_view name, const PipelineShape& shape) {
  return simulate_schedule(make_schedule(name, shape), uniform_durations(shape));
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// Every opened element is closed, in order, there is one root, and attributes are whole. (Not std::regex: GCC 12 warns
// about its own under the sanitizers.)
bool balanced(const std::string& xml) {
  std::vector<std::string> open;
  size_t roots = 0;
  for (size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at)) {
    size_t end = xml.find('>', at);
    if (end == std::string::npos) return false;
    std::string tag = xml.substr(at + 1, end - at - 1);
    at = end;
    if (tag.find('<') != std::string::npos || std::count(tag.begin(), tag.end(), '"') % 2 != 0) return false;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
      continue;
    }
    roots += open.empty();
    if (!tag.ends_with('/')) open.push_back(tag.substr(0, tag.find(' ')));
  }
  return open.empty() && roots == 1;
}

TEST(TimelineSvg, TheReaderOfTheseTestsFindsBrokenXml) {
  EXPECT_TRUE(balanced("<a x=\"1\"><b/></a>"));
  for (const char* broken : {"<a>", "<a></b>", "<a/><a/>", "<a x=\"1/>", "<a><b></a></b>", "<a> < </a>"})
    EXPECT_FALSE(balanced(broken)) << broken;
}

TEST(TimelineSvg, HasOneBoxPerActionAndIsWellFormed) {
  for (std::string_view name : schedule_names()) {
    bool two_chunks = find_schedule(name)->chunks.least == 2;
    PipelineShape shape{4, two_chunks ? 2 : 1, 8};
    TimedSchedule run = timed(name, shape);
    std::string svg = timeline_svg(run);
    size_t actions = 0;
    for (const auto& rank : run.ranks) actions += rank.size();
    EXPECT_EQ(count(svg, "class=\"action"), actions) << name;
    EXPECT_TRUE(balanced(svg)) << name;
    EXPECT_EQ(count(svg, ">rank "), 4u);
  }
}

// Beside each row its share of the time between its own first and last action.
TEST(TimelineSvg, WritesEveryRanksShareOfBubble) {
  TimedSchedule run = timed("1f1b", {4, 1, 4});
  std::string svg = timeline_svg(run);
  ASSERT_LT(run.span(1), run.makespan());
  for (int rank = 0; rank < 4; ++rank) {
    std::string share = fmt::format(">{:.1f} %</text>", 100 * run.bubble(rank) / run.span(rank));
    EXPECT_EQ(count(svg, share), 1u) << "rank " << rank << share;
  }
}

// The rows' bubbles, beside the one of the legend: 1F1B's last rank never waits, ZBV's none.
TEST(TimelineSvg, ShowsBubbles) {
  std::string svg = timeline_svg(timed("1f1b", {2, 1, 2}));
  EXPECT_EQ(count(svg, "class=\"bubble\""), 1u + 2u);  // rank 0 waits before each of its backwards
  EXPECT_NE(svg.find("bubble 33.3 %"), std::string::npos);
  EXPECT_EQ(count(timeline_svg(timed("zbv", {4, 2, 8})), "class=\"bubble\""), 1u);
}

TEST(TimelineSvg, NumbersStandInBoxesTheyFit) {
  EXPECT_EQ(count(timeline_svg(timed("zbv", {8, 2, 32})), "class=\"number\""), 8u * 2 * 32 * 3);
  TimedSchedule run = timed("gpipe", {1, 1, 3});
  run.ranks[0][1].end = run.ranks[0][1].start + 1e-6;
  EXPECT_EQ(count(timeline_svg(run), "class=\"number\""), 5u);
}

TEST(TimelineSvg, WordsAreEscaped) {
  std::string svg = timeline_svg(timed("1f1b", {2, 1, 2}), {.title = "a < b & \"c\"\n", .time_unit = "<s>"});
  EXPECT_TRUE(balanced(svg));
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos);
}

TEST(TimelineSvg, NothingToDrawIsStillAPicture) {
  EXPECT_TRUE(balanced(timeline_svg({.name = "none", .shape = {1, 1, 1}, .ranks = {{}}})));
}

}  // namespace
}  // namespace sextant
