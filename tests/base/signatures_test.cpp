// Functions take at most six parameters, and no booleans where they are declared for others: a call f(x, true, false)
// says nothing. A long list becomes a struct whose members the caller names, a boolean an enum class. Functions end
// within 80 lines.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/checked_sources.h"
#include "base/files.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostParameters = 6;
constexpr size_t kMostLines = 80;

// How many of a file are known, at the most, and why. "Pending" are to be mended: their counts only fall.
struct Known {
  std::string_view file;
  size_t count;
  std::string_view why;
};

constexpr std::string_view kLaunch = "a kernel's arguments, which its launch lists";
constexpr std::array kLongLists{
    Known{"src/exec/cuda/attention/own_attention_backward.cu", 1, "inlined device code"},
    Known{"src/exec/cuda/kernels/adamw_int8.cu", 1, "inlined device code"},
    Known{"src/exec/cuda/kernels/balance_bias.cu", 1, kLaunch},
    Known{"src/exec/cuda/kernels/expert_load.cu", 1, kLaunch},
    Known{"src/exec/cuda/kernels/lost_rows.cu", 1, kLaunch},
    Known{"src/exec/cuda/kernels/muon.cu", 1, kLaunch},
};

constexpr std::string_view kDevice = "pending: device code, where a condition is data of a thread";
constexpr std::array kBooleans{
    Known{"src/text/json_field.h", 2, "values: a flag's default, and whether what was read is right"},
    Known{"src/bench/comm/comm_world.h", 1, "a value: what rank 0 says to all"},
    Known{"src/exec/cuda/kernels/expert_products.h", 2, kDevice},
    Known{"src/exec/cuda/kernels/expert_tile.cuh", 1, kDevice},
    Known{"src/exec/cuda/kernels/hopper.cuh", 3, kDevice},
    Known{"src/exec/cuda/kernels/word_sums.cuh", 1, kDevice},
    Known{"src/models/hf_reader.h", 2, "pending"},
    Known{"src/models/hf_tensors.h", 1, "pending"},
    Known{"src/plan/memory_fit.h", 1, "pending"},
    Known{"src/plan/prediction_interval.h", 1, "pending"},
    Known{"src/train/health/microbatch_check.h", 2, "pending"},
    Known{"src/train/trainer.h", 3, "pending"},
};

constexpr std::string_view kTable = "a table, or a text";
constexpr std::array kLongFunctions{
    Known{"src/targets/cpu/kernel_needs.cpp", 1, kTable},
    Known{"src/stories/stories_plots.cpp", 1, kTable},
    Known{"src/stories/stories_themes_of_nature.cpp", 1, kTable},
    Known{"src/stories/stories_themes_of_town.cpp", 1, kTable},
    Known{"src/stories/stories_themes_of_work.cpp", 1, kTable},
    Known{"src/view/pages/explorer_script.cpp", 1, kTable},
    Known{"app/main.cpp", 1, "pending"},
    Known{"src/config/resolve.cpp", 1, "pending"},
    Known{"src/run/programs.cpp", 1, "pending"},
};

// Where the comment, literal or preprocessor line that begins at `at` ends; `at` where none begins.
size_t end_of_skipped(std::string_view text, size_t at) {
  auto after = [&](std::string_view mark, size_t from) {
    size_t found = text.find(mark, from);
    return found == text.npos ? text.size() : found + mark.size();
  };
  std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) return std::min(text.find('\n', at), text.size());
  if (rest.starts_with("/*")) return after("*/", at + 2);
  if (rest.starts_with("R\"")) {
    size_t open = text.find('(', at);
    return after(")" + std::string(text.substr(at + 2, open - at - 2)) + "\"", open);
  }
  bool apostrophe = rest[0] == '\'' && (at == 0 || !is_of_name(text[at - 1]));  // 1'000 has another
  if (rest[0] == '"' || apostrophe) {
    size_t end = at + 1;
    while (end < text.size() && text[end] != rest[0]) end += text[end] == '\\' ? 2 : 1;
    return std::min(end + 1, text.size());
  }
  if (rest[0] == '#' && (at == 0 || text[at - 1] == '\n')) {
    size_t end = std::min(text.find('\n', at), text.size());
    while (end < text.size() && text[end - 1] == '\\') end = std::min(text.find('\n', end + 1), text.size());
    return end;
  }
  return at;
}

// The text without comments, literals and preprocessor lines; line breaks stay.
std::string code_of(std::string_view text) {
  std::string code;
  for (size_t at = 0; at < text.size();) {
    size_t end = end_of_skipped(text, at);
    if (end == at) {
      code += text[at++];
      continue;
    }
    code += '0';
    for (; at < end; ++at)
      if (text[at] == '\n') code += '\n';
  }
  return code;
}

std::string trimmed(std::string_view text) {
  auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)); };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return std::string(text);
}

// What stands in the brackets that open at `open`, cut at its own commas; defaults are left out.
std::vector<std::string> pieces_in(std::string_view code, size_t open) {
  std::vector<std::string> pieces;
  int depth = 0;
  size_t begin = open + 1;
  bool in_default = false;
  auto close = [&](size_t end) {
    if (!in_default) pieces.push_back(trimmed(code.substr(begin, end - begin)));
    in_default = false;
    begin = end + 1;
  };
  for (size_t at = open; at < code.size(); ++at) {
    char c = code[at];
    if (c == '(' || c == '[' || c == '{' || c == '<') ++depth;
    if (c == ')' || c == ']' || c == '}' || c == '>') --depth;
    if (depth == 0) {
      close(at);
      break;
    }
    if (depth != 1) continue;
    if (c == ',') close(at);
    if (c == '=' && !in_default) close(at), in_default = true;
  }
  return pieces;
}

// "const T& name", as opposed to an argument of a call.
bool is_parameter(std::string_view piece) {
  size_t name = piece.size();
  while (name > 0 && is_of_name(piece[name - 1])) --name;
  if (name == 0 || name == piece.size()) return false;
  auto is_one_of = [](std::string_view set, char c) { return set.find(c) != set.npos; };
  return std::isalpha(static_cast<unsigned char>(piece[0])) && is_one_of(" &*", piece[name - 1]) &&
         std::all_of(piece.begin(), piece.end(),
                     [&](char c) { return is_of_name(c) || is_one_of(" \n:<>,&*()[].", c); });
}

bool is_boolean(std::string_view piece) {
  if (piece.starts_with("const ")) piece.remove_prefix(6);
  if (!piece.starts_with("bool")) return false;
  piece.remove_prefix(4);
  return piece.empty() || (piece[0] == ' ' && std::all_of(piece.begin() + 1, piece.end(), is_of_name));
}

struct Signature {
  std::string name;
  std::vector<std::string> parameters;
};

// visit(Signature) for whatever stands as a name before brackets: declarations, and calls too.
template <class Visit>
void for_each_signature(std::string_view code, const Visit& visit) {
  for (size_t open = code.find('('); open != code.npos; open = code.find('(', open + 1)) {
    size_t begin = open;
    while (begin > 0 && is_of_name(code[begin - 1])) --begin;
    if (begin == open || code.substr(begin, open - begin) == "void") continue;  // a type such as void(bool)
    visit(Signature{std::string(code.substr(begin, open - begin)), pieces_in(code, open)});
  }
}

std::vector<std::string> long_lists(std::string_view code) {
  std::vector<std::string> found;
  for_each_signature(code, [&](const Signature& f) {
    if (f.parameters.size() > kMostParameters && std::all_of(f.parameters.begin(), f.parameters.end(), is_parameter))
      found.push_back(f.name);
  });
  return found;
}

std::vector<std::string> booleans(std::string_view code) {
  std::vector<std::string> found;
  for_each_signature(code, [&](const Signature& f) {
    for (const std::string& parameter : f.parameters)
      if (is_boolean(parameter)) found.push_back(f.name + ": " + parameter);
  });
  return found;
}

// Functions that are no members inside a class, by their first line: a function ends with a brace alone in the first
// column, a table with a semicolon after it.
std::vector<std::string> long_functions(std::string_view text) {
  std::vector<std::string> found;
  std::istringstream lines{std::string(text)};
  std::string head;
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    if (line == "}" && count >= kMostLines) found.push_back(head);
    bool begins = !line.empty() && is_of_name(line[0]) && line[0] != '0';  // what is skipped leaves a zero
    if (begins) head = line, count = 0;
  }
  return found;
}

using Find = std::vector<std::string> (*)(std::string_view);

void expect_known(const std::vector<fs::path>& files, Find find, std::span<const Known> known, std::string_view rule) {
  std::map<std::string, size_t> left;
  for (const Known& one : known) left[std::string(one.file)] = one.count;
  for (const fs::path& file : files) {
    std::vector<std::string> found = find(code_of(read_file(file)));
    auto allowed = left.find(fs::relative(file, checkout::kSources).generic_string());
    if (found.size() <= (allowed == left.end() ? 0 : allowed->second)) continue;
    for (const std::string& one : found) ADD_FAILURE() << file << ": " << one << ": " << rule;
  }
}

TEST(Signatures, HaveAtMostSixParameters) {
  expect_known(checked_sources(), long_lists, kLongLists, "more than six parameters; make a struct of them");
}

TEST(Signatures, HaveNoBooleans) {
  std::vector<fs::path> headers = checked_sources();
  std::erase_if(headers, [](const fs::path& file) { return !file.extension().string().ends_with('h'); });
  ASSERT_GT(headers.size(), 300u);
  expect_known(headers, booleans, kBooleans, "a boolean parameter; make an enum class of it");
}

TEST(Signatures, FunctionsEndWithin80Lines) {
  expect_known(checked_sources(), long_functions, kLongFunctions, "more than 80 lines; name its parts");
}

TEST(Signatures, TheRulesFindWhatTheyForbid) {
  EXPECT_EQ(long_lists("void f(int a, int b, const T<A, B>& c, float* d, int e = 2, X f = {1, 2}, std::span<int> g);"),
            std::vector<std::string>{"f"});
  EXPECT_TRUE(long_lists("void f(int a, int b, const T<A, B>& c, float* d, int e, std::map<A, B> g);").empty());
  EXPECT_TRUE(long_lists("f(a, b + 1, c, d(x), e, g, h);").empty());
  EXPECT_EQ(booleans("void f(int a, bool b = true, const bool c);"),
            (std::vector<std::string>{"f: bool b", "f: const bool c"}));
  EXPECT_TRUE(booleans("std::function<void(bool)> f; void g(std::vector<bool> b); bool h();").empty());
  EXPECT_EQ(code_of("int x = 1'000;  // f(bool b)\n#define F(bool b)\nauto s = \"f(bool \\\" b)\" + R\"(g(bool b))\";"),
            "int x = 1'000;  0\n0\nauto s = 0 + 0;");
  std::string table = "constexpr int kTable[] = {\n", function = "int f() {\n";
  for (size_t line = 0; line < kMostLines; ++line) table += "  1,\n", function += "  g();\n";
  EXPECT_TRUE(long_functions(table + "};\n").empty());
  EXPECT_EQ(long_functions(function + "}\n"), std::vector<std::string>{"int f() {"});
}

}  // namespace
}  // namespace sextant
