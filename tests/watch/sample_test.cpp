// A sample of a large file: whole lines, in order, from its first to its last.
#include <gtest/gtest.h>

#include "run_files.h"
#include "watch/line_sample.h"
#include "watch/run_set.h"

namespace sextant {
namespace {

std::vector<std::string> sampled(const std::filesystem::path& file, size_t count, size_t smallest = 1) {
  std::vector<std::string> lines;
  sample_lines(file, count, smallest, [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

TEST(LineSamples, AreWholeLinesInOrder) {
  RunFiles files("sample");
  std::string text;
  for (int i = 1; i <= 20'000; ++i) text += fmt::format("line {}\n", i);
  files.write("f", text + "a line without an en");
  std::vector<std::string> lines = sampled(files / "f", 10);
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines.front(), "line 1");
  EXPECT_EQ(lines.back(), "line 20000");
  int last = 0;
  for (const std::string& line : lines) {
    ASSERT_TRUE(line.starts_with("line ")) << line;
    int number = std::stoi(line.substr(5));
    EXPECT_GT(number, last);
    last = number;
  }
}

TEST(LineSamples, RepeatNothingAndSurviveAnything) {
  RunFiles files("sample-small");
  files.write("few", "1\n2\n3\n");
  std::vector<std::string> few = sampled(files / "few", 100);
  EXPECT_TRUE(few == (std::vector<std::string>{"1", "2", "3"})) << fmt::format("{}", few.size());
  files.write("long", std::string(100'000, 'x') + "\n");
  for (const std::string& line : sampled(files / "long", 10)) EXPECT_LE(line.size(), 4096u);
  files.write("empty", "");
  EXPECT_TRUE(sampled(files / "empty", 10).empty());
  EXPECT_TRUE(sampled(files / "none", 10).empty());
  EXPECT_TRUE(sampled(files / "few", 10, 100).empty());
  std::filesystem::create_symlink(files / "few", files / "link");
  EXPECT_TRUE(sampled(files / "link", 10).empty());
}

TEST(LineSamples, StandForARunUntilItIsRead) {
  RunFiles files("sample-run");
  std::string text;
  constexpr int kSteps = 40'000;
  for (int step = 1; step <= kSteps; ++step) text += metrics_line(step, 5 - 1e-4 * step);
  files.write("r/metrics.jsonl", text);
  RunSet runs({files.path()});
  runs.rescan();
  const RunColumns& sample = runs.runs()[0]->columns();
  ASSERT_GT(sample.rows(), 300u);
  ASSERT_LE(sample.rows(), 400u);
  EXPECT_EQ(sample.x(XAxis::step, 0), 1);
  EXPECT_EQ(sample.x(XAxis::step, sample.rows() - 1), kSteps);
  EXPECT_NEAR(sample.x(XAxis::seconds, sample.rows() - 1), 0.5 * kSteps, 1);
  for (int rounds = 0; runs.runs()[0]->columns().rows() < kSteps && rounds < 10'000; ++rounds)
    runs.poll_for(std::chrono::milliseconds(5));
  EXPECT_EQ(runs.runs()[0]->columns().rows(), static_cast<size_t>(kSteps));
  EXPECT_FALSE(runs.is_loading());
}

}  // namespace
}  // namespace sextant
