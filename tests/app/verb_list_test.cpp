// The list of verbs: the page of `sextant --help`, words that are reserved, and where the code of a verb is.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "app/help_tree.h"
#include "base/files.h"
#include "checkout.h"
#include "expectations.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kAppFolder = fs::path(checkout::kSources) / "app";

std::vector<std::string> lines_of_help() {
  std::vector<std::string> lines;
  std::istringstream text(run_command("--help").output);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

// The first arguments of the lines MACRO(name, …) of verbs.def.
std::vector<std::string> names_in_def(const std::string& macro) {
  std::vector<std::string> names;
  std::string text = read_file(kAppFolder / "verbs.def");
  const std::regex line("(?:^|\n)" + macro + "\\((\\w+),");
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) names.push_back((*at)[1].str());
  return names;
}

TEST(VerbList, HelpFitsAScreen) {
  std::vector<std::string> lines = lines_of_help();
  EXPECT_LE(lines.size(), 34u);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80u) << line;
}

TEST(VerbList, HelpHasEveryGroupOnce) {
  std::vector<std::string> groups;
  for (const std::string& line : lines_of_help())
    if (!verb_in_row(line).empty() && line[0] != ' ') groups.push_back(line.substr(0, line.find(' ')));
  EXPECT_EQ(groups, (std::vector<std::string>{"start", "train", "plan", "look", "measure", "operate"}));
}

TEST(VerbList, EveryLineIsAVerbOfTheProgram) {
  std::vector<std::string> listed = names_in_def("VERB"), known;
  for (const HelpPage& page : help_tree()) {
    std::string name = page.words;
    std::ranges::replace_if(
        name, [](char c) { return c == ' ' || c == '-'; }, '_');
    if (!name.empty()) known.push_back(name);
  }
  std::ranges::sort(listed);
  std::ranges::sort(known);
  EXPECT_EQ(listed, known);
}

// The line of the list is the first sentence of the verb's own page.
TEST(VerbList, TheSummaryBeginsTheVerbsHelp) {
  for (const std::string& line : lines_of_help()) {
    std::string verb = verb_in_row(line);
    if (verb.empty()) continue;
    std::string summary = line.substr(23);
    EXPECT_TRUE(run_command(verb + " --help").output.starts_with(summary)) << verb;
  }
}

TEST(VerbList, ReservedWordsAreNotImplemented) {
  std::vector<std::string> reserved = names_in_def("RESERVED_VERB");
  for (const char* word : {"serve", "eval", "merge", "export", "quantize", "chat", "learn"})
    EXPECT_EQ(std::ranges::count(reserved, word), 1) << word;
  std::vector<std::string> verbs = help_page("").verbs;
  for (const std::string& word : reserved) {
    EXPECT_EQ(std::ranges::count(verbs, word), 0) << word;
    for (const std::string& line : {word, word + " something --device cpu", "help " + word})
      expect_refusal(run_command(line), 2, {fmt::format("the verb {} is not implemented", word)});
  }
}

// Each option is declared in the file of its verb.
TEST(VerbList, TheMainFileKnowsNoVerb) {
  std::string text = read_file(kAppFolder / "main.cpp");
  EXPECT_LT(std::ranges::count(text, '\n'), 300);
  EXPECT_EQ(text.find("add_option"), text.npos);
  for (const std::string& name : names_in_def("VERB")) EXPECT_EQ(text.find(name + "_verb"), text.npos) << name;
}

}  // namespace
}  // namespace sextant
