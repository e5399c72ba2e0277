// A printed Graph or Program is read back as the same text.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ops/ops.h"

namespace sextant {
namespace {

std::string seed(const char* name) {
  return read_file(std::filesystem::path(SEXTANT_SOURCE_DIR) / "tests/fuzz/seeds" / name);
}

TEST(PrintAndParse, AGraphIsReadBackAsTheSameText) {
  const std::string text = seed("graph.txt");
  EXPECT_EQ(print(parse_graph(text, find_op)), text);
}

TEST(PrintAndParse, AProgramIsReadBackAsTheSameText) {
  const std::string text = seed("program.txt");
  EXPECT_EQ(print(parse_program(text, find_op)), text);
}

}  // namespace
}  // namespace sextant
