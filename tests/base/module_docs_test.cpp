// README.md and docs/tour.md name every module of CMake's list and every folder below src/, and none that is not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SEXTANT_SOURCE_DIR;

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

std::vector<Entry> readme_entries() {
  std::string text = read_file(kRoot / "README.md");
  size_t begin = text.find("## Modules"), end = text.find("```\n\n", begin);
  EXPECT_NE(begin, std::string::npos);
  return entries_of(text.substr(begin, end - begin));
}

std::vector<std::string> modules() {
  std::vector<std::string> all;
  std::istringstream list(read_file(SEXTANT_MODULE_LIST));
  for (std::string line; std::getline(list, line);) all.push_back(line.substr(0, line.find(':')));
  return all;
}

TEST(ModuleDocs, NameEveryModule) {
  ASSERT_GT(modules().size(), 20u);
  for (const std::string& module : modules()) {
    EXPECT_TRUE(names(tour_entries(), module)) << "docs/tour.md does not name src/" << module;
    EXPECT_TRUE(names(readme_entries(), module)) << "README.md, Modules, does not name src/" << module;
  }
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
  for (const std::vector<Entry>& entries : {tour_entries(), readme_entries()}) {
    std::set<std::string> seen;
    for (const Entry& entry : entries) {
      EXPECT_TRUE(fs::is_directory(kRoot / "src" / entry.name)) << "src/" << entry.name;
      EXPECT_TRUE(seen.insert(entry.name).second) << "src/" << entry.name << " is named twice";
    }
  }
}

// Both columns of the README's table begin at the same place in every row.
TEST(ModuleDocs, TheReadmesColumnsAreAligned) {
  std::string text = read_file(kRoot / "README.md");
  std::istringstream rows(text.substr(text.find("## Modules")));
  std::set<size_t> columns;
  for (std::string row; std::getline(rows, row) && !row.starts_with("[");)
    if (size_t second = row.find("  src/"); row.starts_with("src/") && second != std::string::npos)
      columns.insert(second);
  EXPECT_EQ(columns.size(), 1u);
}

}  // namespace
}  // namespace sextant
