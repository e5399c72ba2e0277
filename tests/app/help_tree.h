// The verbs and options of the program as its --help shows them: what completions and manual pages are compared with.
#pragma once

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "command.h"

namespace sextant {

struct HelpPage {
  std::string words;  // "bench gemm"; empty for the program itself
  std::vector<std::string> verbs, options, examples;
};

// A row of the program's own page: "train    sweep         Train every combination…"; the group is in the first row of
// each.
inline std::string verb_in_row(const std::string& line) {
  static const std::regex row("(?:[a-z]+ +| {9})([a-z][a-z-]*) {2,}[A-Z].*");
  std::smatch found;
  return std::regex_match(line, found, row) ? found[1].str() : "";
}

inline HelpPage help_page(const std::string& words) {
  HelpPage page{words, {}, {}, {}};
  std::istringstream text(run_command(words + " --help").output);
  std::string section;
  for (std::string line; std::getline(text, line);) {
    if (!line.empty() && line[0] != ' ' && line.back() == ':') section = line;
    if (std::string verb = words.empty() && section.empty() ? verb_in_row(line) : ""; !verb.empty())
      page.verbs.push_back(verb);
    if (!line.starts_with("  ") || line.starts_with("   ")) continue;
    if (section == "Subcommands:") page.verbs.push_back(line.substr(2, line.find(' ', 2) - 2));
    if (section == "Example:" || section == "Examples:") page.examples.push_back(line.substr(2));
    if (section != "Options:") continue;
    std::string names = line.substr(2, line.find(' ', 2) - 2);
    static const std::regex option("--?[a-z][a-z-]*");
    for (std::sregex_iterator at(names.begin(), names.end(), option), end; at != end; ++at)
      page.options.push_back(at->str());
  }
  return page;
}

// The program and every verb, each before what stands below it.
inline std::vector<HelpPage> help_tree(const std::string& words = "") {
  std::vector<HelpPage> pages{help_page(words)};
  for (const std::string& verb : std::vector<std::string>(pages.front().verbs))
    for (HelpPage& page : help_tree(words.empty() ? verb : words + " " + verb)) pages.push_back(std::move(page));
  return pages;
}

}  // namespace sextant
