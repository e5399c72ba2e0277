// What a pass, an executor or a report knows of an op stands in its definition: nobody compares names, identities or
// paths.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "base/files.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

// Where an op's identity is the matter itself: their definitions, and the pass that matches patterns of them.
bool may_know_ops(const fs::path& file) {
  std::string path = file.generic_string();
  return path.find("/src/ops/") != std::string::npos || path.find("/src/passes/fuse.cpp") != std::string::npos;
}

bool reads_transfers(const fs::path& file) {
  return file.filename() == "transfer.cpp";
}

struct Rule {
  const char* what;
  std::regex pattern;
  bool (*exempts)(const fs::path& file) = may_know_ops;
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> made;
    made.push_back({"an op's identity is compared", std::regex(R"((def|kernel)\)?\s*[!=]=\s*&?(ops::|cpu::|cuda::))")});
    made.push_back({"an op's name is compared",
                    std::regex(R"((\.|->)def(->|\.)name(\s*[!=]=|\.(starts_with|ends_with|find|contains)\(\"))")});
    made.push_back({"the beginning of a path is compared",
                    std::regex(R"((value|op|event|parameter|p)(->|\.)path\.(starts_with|substr|rfind)\()")});
    made.push_back({"a name is cut off a path", std::regex(R"(substr\(std::string_view\(\")")});
    made.push_back({"a transfer is compared as text (ops/transfer.h has transfer_of)",
                    std::regex(R"([!=]=\s*name_of\((Transfer::|\w*\.?transfer\b)|name_of\(Transfer::\w+\)\s*[!=]=)"),
                    reads_transfers});
    made.push_back({"the attr transfer is read or written (ops/transfer.h has transfer_of and set_transfer)",
                    std::regex(R"((text_or|set)\(\"transfer\"|\{\"transfer\", std::)"), reads_transfers});
    return made;
  }();
  return all;
}

TEST(Facts, NobodyComparesNamesOfOpsOrBeginningsOfPaths) {
  int files = 0;
  for (const char* folder : {"src", "app"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SEXTANT_SOURCE_DIR) / folder)) {
      if (!std::set<std::string>{".h", ".cpp", ".cu", ".cuh"}.contains(entry.path().extension())) continue;
      ++files;
      std::string text = read_file(entry.path());
      for (const Rule& rule : rules()) {
        std::smatch found;
        EXPECT_FALSE(!rule.exempts(entry.path()) && std::regex_search(text, found, rule.pattern))
            << entry.path() << ": " << rule.what << ": " << found[0];
      }
    }
  }
  EXPECT_GT(files, 300);
}

// Each rule finds what it is for.
TEST(Facts, TheRulesFindWhatTheyForbid) {
  for (const char* bad : {"if (op.def == &ops::linear) return;", "if (op.def->name == \"linear\") return;",
                          "op.def->name.starts_with(\"linear\")", "value.path.starts_with(\"grad.\")",
                          "std::string_view(op.path).substr(std::string_view(\"norm.\").size())",
                          "if (transfer == name_of(Transfer::all_gather)) return;",
                          "if (name_of(Transfer::all_gather) != transfer) return;", "attrs.text_or(\"transfer\", \"\")",
                          "if (name == name_of(hop.transfer)) return;", "op.attrs.set(\"transfer\", name);"}) {
    std::string text = bad;
    bool found = false;
    for (const Rule& rule : rules()) found = found || std::regex_search(text, rule.pattern);
    EXPECT_TRUE(found) << bad;
  }
}

}  // namespace
}  // namespace sextant
