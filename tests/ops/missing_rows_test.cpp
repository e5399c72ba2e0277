// Which dims of which ops cannot be split: the list is made from the definitions, and each entry must be explained
// where the op is defined, in a comment "No row along h: why" or, for ops without any row, "No row but ...: why".
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "checkout.h"
#include "ir/signature.h"
#include "ops/ops.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

// The letters of input dims that no row splits.
std::set<char> letters_without_row(const OpDef& def) {
  Signature signature = parse_signature(def.operands);
  std::set<char> missing;
  for (const Example& example : def.examples) {
    std::vector<int> in, out;
    for (const TensorType& t : example.inputs) in.push_back(t.shape.rank());
    for (const TensorType& t : infer_types(def, example.attrs, example.inputs)) out.push_back(t.shape.rank());
    std::vector<LayoutRow> rows = layout_rows(def, in, out);
    std::vector<const Operand*> operands = signature.operands_of(in);
    for (size_t i = 0; i < in.size(); ++i) {
      for (int dim = 0; dim < in[i]; ++dim) {
        const std::string& letters = operands[i]->letters;
        bool split =
            std::any_of(rows.begin(), rows.end(), [&](const LayoutRow& row) { return row.inputs[i].shards(dim); });
        if (!split) missing.insert(letters == "*" ? '*' : letters[static_cast<size_t>(dim)]);
      }
    }
  }
  return missing;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The comments of a source file as running text.
std::string comments_of(const std::string& source) {
  std::istringstream lines(source);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    size_t at = line.find("// ");
    if (at != std::string::npos) text += line.substr(at + 3) + " ";
  }
  return text;
}

// "No row along h or p: why." gives {h, p}; a sentence without a reason gives nothing.
std::set<char> explained_letters(const std::string& comments) {
  const std::string phrase = "No row along ";
  std::set<char> letters;
  for (size_t at = comments.find(phrase); at != std::string::npos; at = comments.find(phrase, at + 1)) {
    size_t begin = at + phrase.size(), colon = comments.find(':', begin), stop = comments.find('.', begin);
    if (colon == std::string::npos || stop == std::string::npos || stop < colon + 10) continue;
    std::istringstream words(comments.substr(begin, colon - begin));
    for (std::string word; words >> word;)
      if (word.size() == 1 || (word.size() == 2 && word[1] == ',')) letters.insert(word[0]);
  }
  return letters;
}

struct OpFile {
  std::string comments;
  std::vector<const OpDef*> ops;
};

std::map<std::string, OpFile> op_files() {
  std::map<std::string, OpFile> files;
  for (const auto& entry : fs::directory_iterator(fs::path(checkout::kSources) / "src" / "ops")) {
    if (entry.path().extension() != ".cpp") continue;
    std::string source = text_of(entry.path());
    OpFile& file = files[entry.path().filename().string()];
    file.comments = comments_of(source);
    for (const OpDef* def : all_ops())
      if (source.find("const OpDef " + std::string(def->name) + "{") != std::string::npos) file.ops.push_back(def);
  }
  return files;
}

TEST(MissingRows, EveryOpIsInAFile) {
  size_t found = 0;
  for (const auto& [name, file] : op_files()) found += file.ops.size();
  EXPECT_EQ(found, all_ops().size());
}

TEST(MissingRows, AreExplainedWhereTheOpIsDefined) {
  for (const auto& [name, file] : op_files()) {
    std::set<char> explained = explained_letters(file.comments), missing_here;
    for (const OpDef* def : file.ops) {
      if (def->rows.empty()) {
        EXPECT_NE(file.comments.find("No row but"), std::string::npos) << name << ": " << def->name << " has no rows";
        continue;
      }
      for (char letter : letters_without_row(*def)) {
        missing_here.insert(letter);
        std::printf("  %-28s no row along %c\n", std::string(def->name).c_str(), letter);
        EXPECT_TRUE(explained.contains(letter)) << name << ": " << def->name << " has no row along " << letter
                                                << ", and no comment 'No row along " << letter << ": ...' says why";
      }
    }
    for (char letter : explained)
      EXPECT_TRUE(missing_here.contains(letter))
          << name << ": says why there is no row along " << letter << ", but there is";
  }
}

TEST(MissingRows, AnExplanationNamesTheDimAndTheReason) {
  EXPECT_EQ(explained_letters("No row along h or p: every rank needs the whole of it."), (std::set<char>{'h', 'p'}));
  EXPECT_EQ(explained_letters("No row along b, s and h: made by localize only."), (std::set<char>{'b', 's', 'h'}));
  EXPECT_TRUE(explained_letters("No row along h.").empty());
  EXPECT_TRUE(explained_letters("Rows along h: a matter of course.").empty());
}

}  // namespace
}  // namespace sextant
