// Names and comments use the words of the field: a reader who knows PyTorch, NCCL and Megatron finds no pictures in
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/checked_sources.h"
#include "base/files.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

struct BannedName {
  std::string_view part;
  std::string_view instead;
};

// Parts of identifiers. One that ends in "_" is a first word: "tell_" is in tell_failure, not in foretell.
constexpr std::array<BannedName, 9> kBannedNames{{{"tell_", "report, notify"},
                                                  {"lay_", "merge, apply"},
                                                  {"the_crowd", "median"},
                                                  {"stand_ins", "substitutes"},
                                                  {"odd_among", "outliers"},
                                                  {"_goes_", "uses, is_"},
                                                  {"goes_on", "continues"},
                                                  {"stands_", "is_"},
                                                  {"lies_", "is_"}}};

bool is_banned(std::string_view name, const BannedName& banned) {
  for (size_t at = name.find(banned.part); at != name.npos; at = name.find(banned.part, at + 1))
    if (at == 0 || name[at - 1] == '_' || banned.part.front() == '_') return true;
  return false;
}

// visit(name) for every identifier and word.
template <class Visit>
void for_each_name(std::string_view text, const Visit& visit) {
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (end < text.size() && is_of_name(text[end])) ++end;
    if (end > begin) visit(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

TEST(PlainWords, NamesAreOfTheField) {
  size_t names = 0;
  for (const fs::path& file : checked_sources())
    for_each_name(read_file(file), [&](std::string_view name) {
      ++names;
      for (const BannedName& banned : kBannedNames)
        EXPECT_FALSE(is_banned(name, banned))
            << file << ": " << name << "; instead of " << banned.part << ": " << banned.instead;
    });
  EXPECT_GT(names, 100'000u);
}

// A comment gives a reason, a unit, a bound or a formula, and names what it is about.
TEST(PlainWords, CommentsDoNotBeginWithWhat) {
  for (const fs::path& file : checked_sources()) {
    const std::string text = read_file(file);
    for (size_t at = text.find("// What "); at != text.npos; at = text.find("// What ", at + 1))
      ADD_FAILURE() << file << ": " << text.substr(at, text.find('\n', at) - at);
  }
}

TEST(PlainWords, BannedPartsAreFoundAsWordsOnly) {
  EXPECT_TRUE(is_banned("tell_failure", kBannedNames[0]));
  EXPECT_FALSE(is_banned("foretell_", kBannedNames[0]));
  EXPECT_FALSE(is_banned("overlay_", kBannedNames[1]));
  EXPECT_TRUE(is_banned("is_of_the_crowd", kBannedNames[2]));
  EXPECT_TRUE(is_banned("attention_goes_ragged", kBannedNames[5]));
}

}  // namespace
}  // namespace sextant
