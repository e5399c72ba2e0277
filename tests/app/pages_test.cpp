// Every command of the documentation works as printed: pages with blocks of `sh` (page_blocks.h) are run from top to
// bottom, each in a directory of its own with a text, a model and the configs of the checkout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <regex>
#include <set>

#include "app/help_tree.h"
#include "app/page_blocks.h"
#include "checkout.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

const fs::path kPagesCheckout = checkout::kSources;
const std::set<std::string> kPageLanguages{"sh", "text", "json", "toml", "python"};
const std::set<std::string> kWordsOfShell{"mpi", "peers", "gpu", "elsewhere"};

// Relative to the checkout, sorted.
std::vector<std::string> pages_with_commands() {
  std::vector<std::string> pages;
  std::vector<fs::path> files{kPagesCheckout / "README.md"};
  for (const auto& entry : fs::directory_iterator(kPagesCheckout / "docs"))
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  for (const fs::path& file : files)
    if (read_file(file).find("\n```sh") != std::string::npos)
      pages.push_back(fs::relative(file, kPagesCheckout).generic_string());
  std::ranges::sort(pages);
  return pages;
}

std::string page_case_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = fs::path(info.param).stem().string();
  std::ranges::replace(name, '-', '_');
  return name;
}

// Files that a page may rely on: my.txt, my-model (a Hugging Face directory), configs/ and the program on the path.
class PagePlace {
 public:
  PagePlace() : place_("pages") {
    fs::create_symlink(kPagesCheckout / "configs", place_.path() / "configs");
    fs::create_directories(place_.path() / "bin");
    fs::create_symlink(checkout::kBinary, place_.path() / "bin" / "sextant");
    std::ofstream text(place_ / "my.txt");
    for (const auto& entry : fs::directory_iterator(kPagesCheckout / "docs"))
      if (entry.path().extension() == ".md") text << read_file(entry.path()) << "<|endoftext|>";
  }

  void make_model() {
    Outcome trained = run("sextant train configs/tiny-llama.toml train.steps=2 data.cache=model-cache --out model-run");
    ASSERT_EQ(trained.code, 0) << trained.output;
    fs::create_directories(place_.path() / "my-model");
    for (const char* file : {"config.json", "model.safetensors", "tokenizer.json"})
      fs::copy_file(place_.path() / "model-run" / "step-000002" / file, place_.path() / "my-model" / file);
    fs::remove_all(place_.path() / "model-run");
  }

  // A script for bash that ends at the first command that fails, and names it.
  Outcome run(const std::string& script) {
    std::ofstream(place_ / "block.sh") << "set -eo pipefail\ntrap 'echo \"failed: $BASH_COMMAND\"' ERR\n" << script;
    return run_command(
        fmt::format("--version > /dev/null; cd {0} && export PATH={0}/bin:{1}:$PATH {2} && "
                    "timeout 300 bash block.sh",
                    place_.path().string(), python().parent_path().string(), kMpiAsRoot));
  }

  static fs::path python() { return kPagesCheckout / "build/peers/bin/python"; }

 private:
  // Open MPI refuses root and more ranks than cores unless told otherwise (docs/running.md).
  static constexpr const char* kMpiAsRoot =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1";
  ScratchPlace place_;
};

std::string with_steps(const PageBlock& block) {
  std::string steps = block.value("steps");
  if (steps.empty()) return block.text;
  std::string script;
  for (std::string command : commands_of(block)) {
    if (command.starts_with("sextant train"))
      command.insert(std::min(command.find("  #"), command.size()),
                     " train.steps=" + steps + " optimizer.warmup=1");  // before a comment
    script += command + "\n";
  }
  return script;
}

// The verb of a command line ("bench gemm") and the rest of its words.
struct SextantLine {
  HelpPage page;
  std::vector<std::string> words;
};
std::optional<SextantLine> sextant_line(const std::string& command) {
  static const std::vector<HelpPage> tree = help_tree();
  std::smatch found;
  static const std::regex sextant(R"((^|\s|/)sextant\s+(.*))");
  if (!std::regex_search(command, found, sextant)) return std::nullopt;
  SextantLine line;
  std::istringstream words(found[2].str());
  for (std::string word; words >> word && word != ">" && word != "|" && word != "#";) line.words.push_back(word);
  auto page_of = [](const std::string& verb) { return std::ranges::find(tree, verb, &HelpPage::words); };
  std::string verb = line.words.empty() ? "" : line.words[0];
  auto page = page_of(verb);
  if (line.words.size() > 1 && page_of(verb + " " + line.words[1]) != tree.end())
    page = page_of(verb + " " + line.words[1]);
  EXPECT_NE(page, tree.end()) << "no verb: " << command;
  if (page != tree.end()) line.page = *page;
  return line;
}

// By the help of the verb, all groups of its options included.
void expect_known_options(const SextantLine& line, const std::string& command) {
  std::string help = run_command(line.page.words + " --help").output;
  for (const std::string& word : line.words) {
    if (!word.starts_with("--")) continue;
    std::string option = word.substr(0, word.find('='));
    EXPECT_TRUE(std::regex_search(help, std::regex("[ ,]" + option + "[ ,:\n]"))) << option << " in: " << command;
  }
}

// Files of the checkout that a command starts or reads.
void expect_known_files(const std::string& command) {
  static const std::regex file(R"((^|\s)((scripts|configs|tests)/[A-Za-z0-9_./-]+))");
  for (std::sregex_iterator at(command.begin(), command.end(), file), end; at != end; ++at)
    EXPECT_TRUE(fs::exists(kPagesCheckout / (*at)[2].str())) << (*at)[2].str() << " in: " << command;
}

// A run that a page trains on a GPU must fit one GPU and have no mistake in its config.
void expect_planned(PagePlace& place, const SextantLine& line, const std::string& command) {
  if (line.page.words != "train") return;
  // A config of `new` has a warm-up in proportion to its steps, which depend on text and machine: a command that
  // changes the steps must not depend on it.
  const bool sets_steps = command.find("train.steps=") != std::string::npos;
  std::string plan = "sextant plan";
  for (const std::string& word : line.words)
    if (word.ends_with(".toml"))
      plan += " " + word + (sets_steps ? " optimizer.warmup=2000" : "");
    else if (word.find('=') != std::string::npos && !word.starts_with("--"))
      plan += " " + word;
  Outcome outcome = place.run(plan + " --machine h200");
  EXPECT_EQ(outcome.code, 0) << command << "\n" << plan << "\n" << outcome.output;
}

// Whether `printed` is `expected`, in which a line "…" stands for any lines.
bool printed_as_shown(const std::vector<std::string>& expected, size_t i, const std::vector<std::string>& printed,
                      size_t j) {
  for (; i < expected.size(); ++i, ++j) {
    if (expected[i] == "…") {
      for (size_t from = j; from <= printed.size(); ++from)
        if (printed_as_shown(expected, i + 1, printed, from)) return true;
      return false;
    }
    if (j >= printed.size() || printed[j] != expected[i]) return false;
  }
  return j == printed.size();
}
std::vector<std::string> lines_of_page(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class Pages : public testing::TestWithParam<std::string> {
 protected:
  // The output of the block; empty where the block is not run.
  std::optional<std::string> check(const PageBlock& block) {
    SCOPED_TRACE(fmt::format("{}:{}", GetParam(), block.line));
    if (block.has("gpu") || block.has("elsewhere")) {
      for (const std::string& command : commands_of(block)) {
        expect_known_files(command);
        if (auto line = sextant_line(command)) {
          expect_known_options(*line, command);
          if (block.has("gpu")) expect_planned(place_, *line, command);
        }
      }
      return std::nullopt;
    }
    if (block.has("peers") && !fs::exists(PagePlace::python())) return std::nullopt;
    if (block.has("mpi") && std::system("command -v mpirun > /dev/null") != 0) return std::nullopt;
    Outcome outcome = place_.run(with_steps(block));
    EXPECT_EQ(outcome.code, 0) << block.text << "\n" << outcome.output;
    return outcome.output;
  }

  PagePlace place_;
};

TEST_P(Pages, CommandsWorkAsPrinted) {
  std::string page = read_file(kPagesCheckout / GetParam());
  if (page.find("my-model") != std::string::npos) place_.make_model();
  std::optional<std::string> printed;
  for (const PageBlock& block : blocks_of(page)) {
    EXPECT_TRUE(kPageLanguages.contains(block.language))
        << GetParam() << ":" << block.line << ": a block of '" << block.language << "' (page_blocks.h has the words)";
    if (block.language == "sh") {
      for (const std::string& word : block.words)
        EXPECT_TRUE(kWordsOfShell.contains(word) || word.starts_with("steps=")) << GetParam() << ":" << block.line;
      printed = check(block);
    } else if (block.language == "text" && block.has("exact")) {
      ASSERT_TRUE(printed) << GetParam() << ":" << block.line << ": no command above it was run";
      EXPECT_TRUE(printed_as_shown(lines_of_page(block.text), 0, lines_of_page(*printed), 0))
          << GetParam() << ":" << block.line << " is not what was printed:\n"
          << *printed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Docs, Pages, testing::ValuesIn(pages_with_commands()), page_case_name);

TEST(PageBlocks, AreReadWithTheirWords) {
  std::vector<PageBlock> blocks =
      blocks_of("a\n```sh steps=3 gpu\none \\\n  two\n# no\n\nthree\n```\nb\n```text\nx\n```\n");
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].line, 2);
  EXPECT_EQ(blocks[0].value("steps"), "3");
  EXPECT_TRUE(blocks[0].has("gpu"));
  EXPECT_EQ(commands_of(blocks[0]), (std::vector<std::string>{"one   two", "three"}));
  EXPECT_EQ(blocks[1].text, "x\n");
  EXPECT_TRUE(printed_as_shown({"a", "…", "c"}, 0, {"a", "b", "b", "c"}, 0));
  EXPECT_FALSE(printed_as_shown({"a", "…", "c"}, 0, {"a", "b"}, 0));
  EXPECT_FALSE(printed_as_shown({"a"}, 0, {"a", "b"}, 0));
}

// Pages that have nothing to run would pass unseen.
TEST(PageBlocks, ThePagesForNewcomersHaveCommands) {
  std::vector<std::string> pages = pages_with_commands();
  for (const char* page : {"README.md", "docs/quickstart-text.md", "docs/quickstart-gpu.md", "docs/fine-tuning.md",
                           "docs/many-nodes.md", "docs/metrics.md", "docs/explain.md", "docs/faq.md", "docs/new.md"})
    EXPECT_EQ(std::ranges::count(pages, page), 1) << page;
}

}  // namespace
}  // namespace sextant
