// Manual pages: all verbs and options are there, and groff finds nothing wrong with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "app/help_tree.h"
#include "base/files.h"
#include "expectations.h"

namespace sextant {
namespace {

std::string page_of(const HelpPage& page) {
  std::string name = page.words.empty() ? "sextant" : "sextant-" + page.words;
  std::ranges::replace(name, ' ', '-');
  return name + ".1";
}

// As roff writes a hyphen.
std::string in_roff(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '-' ? "\\-" : std::string(1, c);
  return out;
}

TEST(ManPages, HaveEveryVerbAndOption) {
  ScratchPlace place("man");
  ASSERT_EQ(run_command("man --all " + place / "man1").code, 0);
  size_t pages = 0;
  for (const HelpPage& page : help_tree()) {
    std::string file = place / "man1" + "/" + page_of(page), text = read_file(file);
    EXPECT_EQ(text, run_command("man " + page.words).output) << file;
    for (const std::string& option : page.options)
      EXPECT_NE(text.find("\\fB" + in_roff(option) + "\\fR"), std::string::npos) << file << " " << option;
    for (const std::string& verb : page.verbs)
      EXPECT_NE(text.find("\n.B " + in_roff(verb) + "\n"), std::string::npos) << file << " " << verb;
    for (const std::string& line : page.examples) {
      std::string words = in_roff(line.substr(0, line.find('\'')));
      EXPECT_NE(text.find(words), std::string::npos) << file << " " << line;
    }
    ++pages;
  }
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(place / "man1")) ++files;
  EXPECT_EQ(files, pages);
}

TEST(ManPages, GroffReadsThemWithoutAWarning) {
  if (std::system("command -v groff > /dev/null 2>&1") != 0) GTEST_SKIP() << "groff is not installed";
  ScratchPlace place("man");
  ASSERT_EQ(run_command("man --all " + place / "man1").code, 0);
  Outcome groff = run_command(fmt::format(
      "--version > /dev/null; for page in {}/*.1; do groff -man -ww -z -Tascii $page; done", place / "man1"));
  EXPECT_EQ(groff.output, "");
  Outcome shown = run_command(fmt::format("man bench gemm | groff -man -Tascii -P-cbou"));
  expect_words(shown.output, {"SEXTANT-BENCH-GEMM(1)", "--shape", "EXIT STATUS", "sextant bench gemm --shape"});
}

TEST(ManPages, AnUnknownVerbIsRefused) {
  expect_refusal(run_command("man bench gem"), 2, {"gem", "one of gemm, memory"});
}

}  // namespace
}  // namespace sextant
