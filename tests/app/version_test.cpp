// One version: the number of project() in CMakeLists.txt, with the commit, and a section of CHANGELOG.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>

#include "base/files.h"
#include "command.h"

namespace sextant {
namespace {

const std::filesystem::path kCheckout = SEXTANT_SOURCE_DIR;

std::string project_version() {
  std::smatch found;
  std::string text = read_file(kCheckout / "CMakeLists.txt");
  return std::regex_search(text, found, std::regex("project\\(sextant VERSION ([0-9.]+)")) ? found[1].str() : "none";
}

TEST(Version, IsThatOfTheProjectWithTheCommit) {
  Outcome outcome = run_command("--version");
  EXPECT_EQ(outcome.code, 0);
  std::smatch found;
  ASSERT_TRUE(
      std::regex_match(outcome.output, found, std::regex("sextant ([0-9.]+)( \\([0-9a-f]{7,}(\\+changes)?\\))?\n")))
      << outcome.output;
  EXPECT_EQ(found[1], project_version());
  EXPECT_EQ(found[2].matched, std::filesystem::exists(kCheckout / ".git")) << outcome.output;
}

TEST(Version, OutsideOfACheckoutIsTheNumberAlone) {
  ScratchPlace place("version");
  std::string command =
      fmt::format("cmake -DSOURCE={0} -DVERSION=1.2.3 -DOUT={0}/version.cpp -P {1}/cmake/write_version.cmake",
                  place.path().string(), kCheckout.string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_NE(read_file(place / "version.cpp").find("return \"1.2.3\";"), std::string::npos);
}

TEST(Version, HasASectionInTheChangelog) {
  EXPECT_NE(read_file(kCheckout / "CHANGELOG.md").find(fmt::format("\n## [{}]", project_version())), std::string::npos);
}

}  // namespace
}  // namespace sextant
