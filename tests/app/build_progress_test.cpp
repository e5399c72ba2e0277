// scripts/build-progress: a build that takes minutes is not silent, and does not fill the screen either.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/files.h"
#include "checkout.h"
#include "expectations.h"

namespace sextant {
namespace {

std::vector<std::string> printed_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Output of the script when this shell command feeds it.
std::string progress_of(const std::string& fed, const std::string& log, const std::string& pause = "") {
  return run_command(fmt::format("--version > /dev/null; {{ {} ; }} | {}/scripts/build-progress {} {}", fed,
                                 checkout::kSources, log, pause))
      .output;
}

const std::string kTwoHundredSteps = "for i in $(seq 1 200); do echo \"[$i/200] Building CXX object $i.o\"; done";

TEST(BuildProgress, ALineForEveryTenth) {
  ScratchPlace place("progress");
  std::vector<std::string> lines = printed_lines(progress_of(kTwoHundredSteps, place / "log"));
  ASSERT_EQ(lines.size(), 10u);
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_TRUE(lines[i].starts_with(fmt::format("  [{}/200] ", 20 * (i + 1)))) << lines[i];
  EXPECT_EQ(printed_lines(read_file(place / "log")).size(), 200u);
}

TEST(BuildProgress, ALineAfterAWhileWithoutOne) {
  ScratchPlace place("progress");
  std::string said = progress_of("echo '[1/200] a'; sleep 2.5; echo warning: b", place / "log", "1");
  EXPECT_GE(printed_lines(said).size(), 1u) << said;
  EXPECT_TRUE(said.starts_with("  [1/200] ")) << said;
  EXPECT_EQ(read_file(place / "log"), "[1/200] a\nwarning: b\n");
}

TEST(BuildProgress, InPlaceOnATerminal) {
  if (std::system("command -v script > /dev/null") != 0) GTEST_SKIP() << "script(1) is not installed";
  ScratchPlace place("progress");
  write_text(place / "fed", kTwoHundredSteps);
  std::string said =
      run_command(fmt::format("--version > /dev/null; script -qec 'bash {} | {}/scripts/build-progress {}' "
                              "/dev/null",
                              place / "fed", checkout::kSources, place / "log"))
          .output;
  expect_words(said, {"\r\033[K  [1/200] ", "\r\033[K  [200/200] "});
  EXPECT_EQ(said.find('\n'), said.npos);
}

}  // namespace
}  // namespace sextant
