// Properties of an op or of an axis that a pass, an executor or a report uses are part of its definition: no code
// compares names, identities or paths.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "base/checked_sources.h"
#include "base/files.h"
#include "mesh/axis.h"

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
    made.push_back(
        {"a word of the config is compared as a string (its enum's Choice has it)",
         std::regex(
             R"((run|config|run_|config_)(\.|->)(mesh|pipeline|data|batch|optimizer|train|offload|checkpoint|log|spike|loss_scale)\.[a-z_.]*\s*[!=]=\s*\")")});
    made.push_back(
        {"a word of the config is compared as a string (its enum's Choice has it)",
         std::regex(
             R"(\w\w(\.|->)(recompute|precision|schedule|context|ring_order|dispatch|deferred_gradients|activations|action|reproducible|validation_split|on_error|master_weights|expert_gradients|tensor_stats_format)\s*[!=]=\s*\")")});
    made.push_back({"the attr transfer is read or written (ops/transfer.h has transfer_of and set_transfer)",
                    std::regex(R"((text_or|set)\(\"transfer\"|\{\"transfer\", std::)"), reads_transfers});
    return made;
  }();
  return all;
}

TEST(Facts, NobodyComparesNamesOfOpsOrBeginningsOfPaths) {
  int files = 0;
  for (const fs::path& file : checked_sources()) {
    ++files;
    std::string text = read_file(file);
    for (const Rule& rule : rules()) {
      std::smatch found;
      EXPECT_FALSE(!rule.exempts(file) && std::regex_search(text, found, rule.pattern))
          << file << ": " << rule.what << ": " << found[0];
    }
  }
  EXPECT_GT(files, 300);
}

// The first axis that is named as a string, comments left out; empty where none is.
std::string named_axis(std::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    line = line.substr(0, line.find("//"));
    for (const AxisDef& axis : kAxes)
      if (std::string quoted = '"' + std::string(axis.name) + '"'; line.find(quoted) != line.npos) return quoted;
    begin = end + 1;
  }
  return "";
}

// Axes have their names in mesh/axis.h and their keys in config/mesh_axes.h; examples of ops stand for any mesh.
TEST(Facts, NobodyElseNamesAnAxis) {
  for (const fs::path& file : checked_sources()) {
    std::string path = file.generic_string();
    bool table = path.ends_with("/src/mesh/axis.h") || path.ends_with("/src/config/mesh_axes.h");
    if (table || path.find("/src/ops/") != std::string::npos) continue;
    EXPECT_EQ(named_axis(read_file(file)), "") << file << ": ask for the axis's role (mesh/axis.h)";
  }
  EXPECT_EQ(named_axis("x\n  if (axis.name() == \"tp\") return;  // so\n"), "\"tp\"");
  EXPECT_EQ(named_axis("int x;  // by axes: \"tp\"\nmesh.tp = 2;\n"), "");
}

// Each rule finds what it is for.
TEST(Facts, TheRulesFindWhatTheyForbid) {
  for (const char* bad : {"if (op.def == &ops::linear) return;", "if (op.def->name == \"linear\") return;",
                          "op.def->name.starts_with(\"linear\")", "value.path.starts_with(\"grad.\")",
                          "std::string_view(op.path).substr(std::string_view(\"norm.\").size())",
                          "if (transfer == name_of(Transfer::all_gather)) return;",
                          "if (name_of(Transfer::all_gather) != transfer) return;", "attrs.text_or(\"transfer\", \"\")",
                          "if (run.train.recompute == \"full\") return;", "wsd = optimizer.schedule != \"wsd\";",
                          "bool off = settings_.action == \"none\";", "if (name == name_of(hop.transfer)) return;",
                          "op.attrs.set(\"transfer\", name);"}) {
    std::string text = bad;
    bool found = false;
    for (const Rule& rule : rules()) found = found || std::regex_search(text, rule.pattern);
    EXPECT_TRUE(found) << bad;
  }
}

}  // namespace
}  // namespace sextant
