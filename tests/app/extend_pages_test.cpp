// Files and folders that the pages of docs/extend name are there.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>

#include "base/files.h"
#include "checkout.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

TEST(ExtendPages, NameFilesThatExist) {
  const fs::path checkout = checkout::kSources;
  const std::regex named("`((?:src|app|tests|docs|cmake|scripts)/[A-Za-z0-9_./-]+|[A-Z][A-Za-z]+\\.(?:md|txt))`");
  size_t pages = 0;
  for (const auto& entry : fs::directory_iterator(checkout / "docs/extend")) {
    ++pages;
    std::string text = read_file(entry.path());
    size_t files = 0;
    for (std::sregex_iterator at(text.begin(), text.end(), named), end; at != end; ++at, ++files) {
      std::string file = (*at)[1].str();
      if (file.find("NAME") != std::string::npos) continue;  // stands for what is added
      EXPECT_TRUE(fs::exists(checkout / file)) << entry.path().filename() << " names " << file;
    }
    EXPECT_GT(files, 0u) << entry.path();
  }
  EXPECT_GE(pages, 2u);
}

}  // namespace
}  // namespace sextant
