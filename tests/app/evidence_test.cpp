// docs/evidence.md: every row of the tables of README.md and
// docs/comparison.md, and every sentence there that speaks of Sextant's speed
// or nature, has a line with a test or a file of results that exists; and
// figures that can be computed again from results are.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "base/files.h"
#include "checkout.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kSources(checkout::kSources);

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream in(row.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) {
    size_t begin = cell.find_first_not_of(' ');
    cells.push_back(begin == cell.npos ? "" : cell.substr(begin, cell.find_last_not_of(' ') - begin + 1));
  }
  return cells;
}

std::string section_of(const fs::path& page, const std::string& heading) {
  std::string text = "\n" + read_file(kSources / page);
  size_t begin = text.find("\n## " + heading + "\n");
  EXPECT_NE(begin, text.npos) << page << " has no section " << heading;
  return begin == text.npos ? "" : text.substr(begin, text.find("\n## ", begin + 1) - begin);
}

// The rows of all tables of a section, without their headings.
std::vector<std::vector<std::string>> rows_of(const std::string& section) {
  std::vector<std::vector<std::string>> rows;
  bool in_body = false;
  for (const std::string& line : lines_of(section)) {
    if (!line.starts_with('|')) in_body = false;
    if (line.starts_with("|---")) {
      in_body = true;
    } else if (in_body) {
      rows.push_back(cells_of(line));
    }
  }
  return rows;
}

std::string plain(std::string text) {
  for (size_t at = text.find("**"); at != text.npos; at = text.find("**")) text.erase(at, 2);
  return text;
}

std::string in_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return plain(text);
}

// Statement -> what backs it.
std::map<std::string, std::string> evidence(const std::string& heading) {
  std::map<std::string, std::string> found;
  for (const std::vector<std::string>& row : rows_of(section_of("docs/evidence.md", heading)))
    EXPECT_TRUE(found.emplace(row.at(0), row.at(1)).second) << row.at(0) << " stands twice";
  return found;
}

std::set<std::string> known_tests() {
  std::set<std::string> tests;
  const std::regex declared(R"((?:^|\n)TEST(?:_F|_P)?\((\w+),\s*(\w+)\))");
  for (const auto& entry : fs::recursive_directory_iterator(kSources / "tests")) {
    if (entry.path().extension() != ".cpp") continue;
    std::string text = read_file(entry.path());
    for (std::sregex_iterator at(text.begin(), text.end(), declared), end; at != end; ++at)
      tests.insert(fmt::format("{}.{}", (*at)[1].str(), (*at)[2].str()));
  }
  return tests;
}

TEST(Evidence, NamesTestsAndResultsThatExist) {
  const std::set<std::string> tests = known_tests();
  const std::regex code("`([^`]+)`");
  size_t named = 0;
  for (const char* heading : {"README: What works", "README: Measured", "Comparison: side by side",
                              "Comparison: what Sextant lacks", "Comparison: sentences"})
    for (const auto& [statement, backing] : evidence(heading)) {
      size_t here = 0;
      for (std::sregex_iterator at(backing.begin(), backing.end(), code), end; at != end; ++at, ++here) {
        std::string name = (*at)[1].str();
        bool file = name.find('/') != name.npos;
        EXPECT_TRUE(file ? fs::is_regular_file(kSources / name) : tests.contains(name)) << statement << ": " << name;
      }
      EXPECT_GT(here, 0u) << statement << " names neither a test nor a result";
      named += here;
    }
  EXPECT_GT(named, 60u);
}

void expect_a_line_for_each(const std::vector<std::string>& statements, const std::string& heading) {
  std::map<std::string, std::string> lines = evidence(heading);
  for (const std::string& statement : statements)
    EXPECT_EQ(lines.erase(statement), 1u) << heading << " of docs/evidence.md has no line for: " << statement;
  for (const auto& [statement, backing] : lines) ADD_FAILURE() << statement << " is no row there any more";
}

std::vector<std::string> first_cells(const fs::path& page, const std::string& heading) {
  std::vector<std::string> cells;
  for (const std::vector<std::string>& row : rows_of(section_of(page, heading))) cells.push_back(plain(row.at(0)));
  return cells;
}

TEST(Evidence, EveryRowHasALine) {
  expect_a_line_for_each(first_cells("README.md", "What works"), "README: What works");
  expect_a_line_for_each(first_cells("README.md", "Measured"), "README: Measured");
  expect_a_line_for_each(first_cells("docs/comparison.md", "Side by side"), "Comparison: side by side");
}

TEST(Evidence, EveryThingThatIsLackingHasALine) {
  std::vector<std::string> items;
  for (const std::string& line :
       lines_of(section_of("docs/comparison.md", "What Sextant lacks, in the order in which people ask")))
    if (std::regex_search(line, std::regex("^[0-9]+\\. "))) items.push_back(line.substr(line.find(' ') + 1));
  std::map<std::string, std::string> lines = evidence("Comparison: what Sextant lacks");
  EXPECT_EQ(items.size(), lines.size());
  for (const std::string& item : items)
    EXPECT_TRUE(std::ranges::any_of(lines, [&](const auto& line) { return item.starts_with(line.first); })) << item;
}

// Sentences end with a full stop and a blank before a capital.
std::vector<std::string> sentences_of(const std::string& text) {
  std::vector<std::string> sentences;
  size_t begin = 0;
  for (size_t at = text.find(". "); at != text.npos; at = text.find(". ", at + 1)) {
    if (at + 2 < text.size() && !std::isupper(static_cast<unsigned char>(text[at + 2])) && text[at + 2] != '[')
      continue;
    sentences.push_back(text.substr(begin, at + 1 - begin));
    begin = at + 2;
  }
  sentences.push_back(text.substr(begin));
  return sentences;
}

TEST(Evidence, EverySentenceAboutSextantHasALine) {
  std::string paragraphs = section_of("docs/comparison.md", "In one paragraph each"),
              speed = section_of("docs/comparison.md", "Speed");
  std::string own = paragraphs.substr(paragraphs.find("**Sextant**"));
  std::map<std::string, std::string> lines = evidence("Comparison: sentences");
  std::set<std::string> used;
  for (const std::string& text : {in_one_line(own), in_one_line(speed.substr(speed.find('\n', 1)))})
    for (const std::string& sentence : sentences_of(text)) {
      if (sentence.find_first_not_of(' ') == sentence.npos) continue;
      bool backed = false;
      for (const auto& [statement, backing] : lines)
        if (sentence.find(statement) != sentence.npos) backed = true, used.insert(statement);
      EXPECT_TRUE(backed) << "docs/evidence.md has no line for: " << sentence;
    }
  for (const auto& [statement, backing] : lines) EXPECT_TRUE(used.contains(statement)) << statement;
  // Statements about other projects come from those projects: each paragraph names its source.
  for (const std::string& paragraph : lines_of(paragraphs))
    if (paragraph.starts_with("**") && !paragraph.starts_with("**Sextant**")) {
      EXPECT_TRUE(paragraph.starts_with("**[")) << paragraph;
    }
}

// "628 k tokens/s", "20.8 GiB", "1.15 ×", as they are rounded in the README.
void expect_words_in(const std::string& cell, std::initializer_list<std::string> words) {
  for (const std::string& word : words) EXPECT_NE(cell.find(word), cell.npos) << word << " is not in: " << cell;
}

std::string thousands(double rate) {
  return rate >= 99'950 ? fmt::format("{:.0f} k", rate / 1e3) : fmt::format("{:.1f} k", rate / 1e3);
}

TEST(Evidence, FiguresOfTheReadmeAreThoseOfTheResults) {
  const nlohmann::json gpu = nlohmann::json::parse(read_file(kSources / "bench/results/train_gpu.json"));
  struct Row {
    const char* label;
    const char* model;
    double tokens;  // in a step
  };
  double slowest = 1e9, fastest = 0, least_memory = 1e9, most_memory = 0;
  std::vector<std::vector<std::string>> rows = rows_of(section_of("README.md", "Measured"));
  for (const Row& row :
       {Row{"GPT-2 124 M, 64 × 1024", "gpt2-124m", 64.0 * 1024},
        Row{"GPT-2 1.5 B, 16 × 1024", "gpt2-1.5b", 16.0 * 1024}, Row{"Llama 1 B, 8 × 4096", "llama-1b", 8.0 * 4096},
        Row{"Llama 3 B, 3 × 4096", "llama-3b", 3.0 * 4096}}) {
    auto found = std::ranges::find_if(rows, [&](const auto& cells) { return cells.at(0) == row.label; });
    ASSERT_NE(found, rows.end()) << row.label;
    const nlohmann::json &ours = gpu.at("models").at(row.model).at("sextant"),
                         &theirs = gpu.at("models").at(row.model).at("torch compile");
    auto number = [](const nlohmann::json& side, const char* key) { return side.at(key).get<double>(); };
    constexpr double kGiB = 1024.0 * 1024 * 1024;
    for (auto [side, cell] : {std::pair{&ours, 1}, {&theirs, 2}})
      expect_words_in(found->at(static_cast<size_t>(cell)),
                      {thousands(row.tokens / number(*side, "step_s")),
                       fmt::format("{:.1f} GiB", number(*side, "peak_bytes") / kGiB)});
    double speed = number(theirs, "step_s") / number(ours, "step_s"),
           memory = number(ours, "peak_bytes") / number(theirs, "peak_bytes");
    expect_words_in(found->at(3), {fmt::format("{:.2f} ×", speed), fmt::format("memory {:.2f} ×", memory)});
    expect_words_in(found->at(4), {fmt::format("{:.1f} s against {:.0f} s", number(ours, "first_step_s"),
                                               number(theirs, "first_step_s"))});
    slowest = std::min(slowest, speed), fastest = std::max(fastest, speed);
    least_memory = std::min(least_memory, memory), most_memory = std::max(most_memory, memory);
  }
  std::string said = in_one_line(section_of("docs/comparison.md", "Speed"));
  expect_words_in(said, {fmt::format("{:.2f} to {:.2f} times as fast", slowest, fastest),
                         fmt::format("{:.2f} to {:.2f} of the memory", least_memory, most_memory)});
}

TEST(Evidence, FiguresOfTheCpuAndOfFp8AreThoseOfTheResults) {
  const nlohmann::json cpu = nlohmann::json::parse(read_file(kSources / "bench/results/train_cpu.json"));
  std::vector<std::vector<std::string>> rows = rows_of(section_of("README.md", "Measured"));
  const std::vector<std::string>& row = rows.front();
  auto rate = [&](const nlohmann::json& side) {
    return fmt::format("{:.0f} tokens/s", side.at("tokens_per_s").get<double>());
  };
  expect_words_in(row.at(1), {rate(cpu.at("sextant"))});
  expect_words_in(row.at(2),
                  {"eager: " + rate(cpu.at("torch").at("eager")),
                   fmt::format("compiled: {:.0f}", cpu.at("torch").at("compile").at("tokens_per_s").get<double>())});
  expect_words_in(row.at(3), {fmt::format("{:.2f} ×", cpu.at("speed_over_best_torch").get<double>())});

  const nlohmann::json fp8 = nlohmann::json::parse(read_file(kSources / "bench/results/fp8_gpu.json"));
  double least = 1e9, most = 0;
  for (const auto& [model, sides] : fp8.at("models").items()) {
    double ratio =
        sides.at("torch compile-fp8").at("step_s").get<double>() / sides.at("sextant fp8").at("step_s").get<double>();
    least = std::min(least, ratio), most = std::max(most, ratio);
  }
  std::string said = section_of("docs/comparison.md", "Side by side");
  expect_words_in(said, {fmt::format("{:.2f} to {:.2f}x of torch.compile's", least, most)});
}

}  // namespace
}  // namespace sextant
