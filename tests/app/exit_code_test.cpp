// docs/exit-codes.md says what base/exit_code.h does.
#include "base/exit_code.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "checkout.h"

namespace sextant {
namespace {

TEST(ExitCodes, AreDocumentedOneRowEach) {
  std::string page = read_file(std::string(checkout::kSources) + "/docs/exit-codes.md");
  int number = 0;
  for (const ExitMeaning& row : exit_meanings()) {
    EXPECT_EQ(number_of(row.code), number++);
    std::string line =
        fmt::format("\n| {} | {} | {} | {} |\n", number_of(row.code), row.name, row.meaning, row.what_next);
    EXPECT_NE(page.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace sextant
