// One version: the number of project() in CMakeLists.txt, with the commit, and a section of CHANGELOG.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "base/files.h"
#include "checkout.h"
#include "command.h"

namespace sextant {
namespace {

const std::filesystem::path kCheckout = checkout::kSources;

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
      std::regex_search(outcome.output, found, std::regex("^sextant ([0-9.]+)( \\([0-9a-f]{7,}(\\+changes)?\\))?\n")))
      << outcome.output;
  EXPECT_EQ(found[1], project_version());
  EXPECT_EQ(found[2].matched, std::filesystem::exists(kCheckout / ".git")) << outcome.output;
}

TEST(Version, SaysWhatItWasBuiltWith) {
  Outcome text = run_command("--version"), json = run_command("--version --json");
  ASSERT_EQ(json.code, 0) << json.output;
  auto facts = nlohmann::json::parse(json.output);
  EXPECT_EQ(facts.at("version"), project_version());
  for (const char* part : {"compiler", "CUDA", "cuDNN", "NCCL", "MPI", "Snappy", "LZ4"}) {
    const auto& version = facts.at("built_with").at(part);
    std::string line =
        fmt::format("\n{:<10}{}", part, version.is_null() ? "built without" : version.get<std::string>());
    EXPECT_NE(text.output.find(line), std::string::npos) << line << " is not in\n" << text.output;
  }
  // The compiler's own version number, and the MPI that the tests start ranks with.
  EXPECT_NE(facts["built_with"]["compiler"].get<std::string>().find(std::to_string(__GNUC__)), std::string::npos);
#ifdef SEXTANT_MPIRUN
  EXPECT_TRUE(facts["built_with"]["MPI"].is_string()) << json.output;
#endif
  Outcome alone = run_command("--json");
  EXPECT_EQ(alone.code, 2) << alone.output;
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
