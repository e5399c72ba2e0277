// docs/tour.md names every module of CMake's list and every folder below src/, and none that is not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "checkout.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = checkout::kSources;

// Each "src/NAME" of a text, in order, with what is said about it: the text up to the next one or to the line's end.
struct Entry {
  std::string name, text;
};
std::vector<Entry> entries_of(const std::string& text) {
  std::vector<Entry> entries;
  std::regex pattern(R"(src/([a-z]+)\b)");
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    auto from = static_cast<size_t>(at->position()) + 4;
    entries.push_back({(*at)[1], text.substr(from, std::min(text.find('\n', from), text.find("src/", from)) - from)});
  }
  return entries;
}

// "exec/cpu" to its part of the table: the row of exec must say `cpu/`.
bool names(const std::vector<Entry>& entries, const std::string& module) {
  size_t slash = module.find('/');
  std::string first = module.substr(0, slash), last = module.substr(module.rfind('/') + 1);
  return std::ranges::any_of(entries, [&](const Entry& entry) {
    return entry.name == first &&
           (slash == std::string::npos || std::regex_search(entry.text, std::regex("\\b" + last + "/")));
  });
}

// The table of the tour: its rows up to the first heading.
std::vector<Entry> tour_entries() {
  std::string text = read_file(kRoot / "docs" / "tour.md");
  size_t begin = text.find("| module |"), end = text.find("\n## ", begin);
  EXPECT_NE(begin, std::string::npos);
  return entries_of(text.substr(begin, end - begin));
}

// The anchors that GitHub gives headings: lower case, without punctuation, blanks as dashes.
std::set<std::string> heading_anchors(const std::string& page) {
  std::set<std::string> anchors;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) continue;
    std::string anchor;
    for (char c : line.substr(line.find_first_not_of("# "))) {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      else if (c == ' ')
        anchor += '-';
    }
    anchors.insert(anchor);
  }
  return anchors;
}

std::vector<std::string> modules() {
  std::vector<std::string> all;
  std::istringstream list(read_file(checkout::kModuleList));
  for (std::string line; std::getline(list, line);) all.push_back(line.substr(0, line.find(':')));
  return all;
}

TEST(ModuleDocs, NameEveryModule) {
  ASSERT_GT(modules().size(), 20u);
  for (const std::string& module : modules())
    EXPECT_TRUE(names(tour_entries(), module)) << "docs/tour.md does not name src/" << module;
}

TEST(ModuleDocs, TheTourNamesEveryFolder) {
  std::vector<Entry> tour = tour_entries();
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
    if (!entry.is_directory()) continue;
    std::string folder = fs::relative(entry.path(), kRoot / "src").generic_string();
    EXPECT_TRUE(names(tour, folder)) << "docs/tour.md does not name src/" << folder;
  }
}

TEST(ModuleDocs, NameEachFolderOnceAndNoOther) {
  std::set<std::string> seen;
  for (const Entry& entry : tour_entries()) {
    EXPECT_TRUE(fs::is_directory(kRoot / "src" / entry.name)) << "src/" << entry.name;
    EXPECT_TRUE(seen.insert(entry.name).second) << "src/" << entry.name << " is named twice";
  }
}

// Whoever reads the README finds every page from there.
TEST(Readme, LinksEveryPage) {
  std::string text = read_file(kRoot / "README.md");
  for (const auto& entry : fs::directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() != ".md") continue;
    EXPECT_NE(text.find("(docs/" + entry.path().filename().string() + ")"), std::string::npos) << entry.path();
  }
  EXPECT_LE(std::ranges::count(text, '\n'), 150);
}

// Links from page to page, and to headings in them, lead somewhere.
TEST(PageLinks, LeadToFilesAndHeadings) {
  std::vector<fs::path> pages{kRoot / "README.md", kRoot / "CHANGELOG.md", kRoot / "CONTRIBUTING.md"};
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  const std::regex link(R"(\]\(([^)#\s:]*)(#[^)\s]*)?\))");
  for (const fs::path& page : pages) {
    std::string text = read_file(page);
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      fs::path target = (*at)[1].length() == 0 ? page : page.parent_path() / (*at)[1].str();
      EXPECT_TRUE(fs::exists(target)) << page.filename() << " links " << at->str();
      if ((*at)[2].length() == 0 || !fs::exists(target)) continue;
      EXPECT_TRUE(heading_anchors(read_file(target)).contains((*at)[2].str().substr(1)))
          << page.filename() << " links " << at->str();
    }
  }
}

}  // namespace
}  // namespace sextant
