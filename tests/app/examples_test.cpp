// The examples under --help work as they are printed.
#include <gtest/gtest.h>

#include <set>

#include "app/help_tree.h"
#include "checkout.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

// Commands that take long, do not end, or need a launcher: of these only the options are looked up.
bool is_only_read(const std::string& line) {
  return line == "sextant watch runs" || line.starts_with("mpirun") || line.starts_with("sextant bench machine") ||
         line.starts_with("sextant bench memory") || line.starts_with("sextant validate");
}

// A pager and an unfit machine are no fault of the example.
bool is_allowed_code(const std::string& line, int code) {
  return code == 0 || (line == "sextant doctor" && code == 1);
}

void expect_options_known(const HelpPage& page, const std::string& line) {
  static const std::regex option(" (--[a-z][a-z-]*)");
  for (std::sregex_iterator at(line.begin(), line.end(), option), end; at != end; ++at)
    EXPECT_EQ(std::count(page.options.begin(), page.options.end(), (*at)[1].str()), 1) << line;
}

TEST(Examples, WorkAsPrinted) {
  ScratchPlace place("examples");
  fs::create_symlink(fs::path(checkout::kSources) / "configs", place.path() / "configs");
  fs::create_symlink(fs::path(checkout::kSources) / "README.md", place.path() / "my.txt");  // stands for one's own text
  fs::create_directories(place.path() / "bin");
  fs::create_symlink(checkout::kBinary, place.path() / "bin" / "sextant");
  std::set<std::string> seen;
  for (const HelpPage& page : help_tree()) {
    EXPECT_FALSE(page.examples.empty()) << page.words;
    for (const std::string& line : page.examples) {
      EXPECT_NE(line.find("sextant " + page.words), std::string::npos) << line << " is no example of " << page.words;
      EXPECT_TRUE(seen.insert(line).second) << line << " stands twice";
      if (is_only_read(line)) {
        expect_options_known(page, line);
        continue;
      }
      if (line.ends_with("| man -l -") && std::system("command -v man > /dev/null") != 0) continue;
      Outcome outcome =
          run_command(fmt::format("--version > /dev/null; cd {0} && export PATH={0}/bin:$PATH MANPAGER=cat && {1}",
                                  place.path().string(), line));
      EXPECT_TRUE(is_allowed_code(line, outcome.code)) << line << "\n" << outcome.output;
    }
  }
}

}  // namespace
}  // namespace sextant
