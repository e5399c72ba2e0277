// Completions, in the shells themselves: what a person would be offered.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "app/help_tree.h"
#include "base/files.h"
#include "checkout.h"

namespace sextant {
namespace {

bool has_program(const std::string& name) {
  return std::system(fmt::format("command -v {} > /dev/null 2>&1", name).c_str()) == 0;
}

class Completions : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* shell : {"bash", "zsh", "fish"})
      ASSERT_EQ(run_command(fmt::format("completions {} > {}", shell, place_ / shell)).code, 0) << shell;
  }

  // Output lines of `script`, run by `shell`. "sextant" is the program under test.
  std::vector<std::string> lines_of(const std::string& shell, const std::string& script) {
    write_file_atomically(place_ / "script", script);
    std::filesystem::path bin = place_.path() / "bin";
    std::filesystem::create_directories(bin);
    if (!std::filesystem::exists(bin / "sextant")) std::filesystem::create_symlink(checkout::kBinary, bin / "sextant");
    Outcome outcome =
        run_command(fmt::format("--version > /dev/null; PATH={}:$PATH {} {}", bin.string(), shell, place_ / "script"));
    std::vector<std::string> lines;
    std::istringstream text(outcome.output);
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

  // Completions that bash offers after these words; the last word is the one that is being typed.
  std::vector<std::string> in_bash(const std::string& words) {
    return lines_of("bash", fmt::format("source {}\nCOMP_WORDBREAKS=$' \\t\\n\"\\'><=;|&(:'\n"
                                        "COMP_WORDS=(sextant {})\nCOMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
                                        "_sextant\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
                                        place_ / "bash", words));
  }

  std::vector<std::string> in_fish(const std::string& line) {
    std::vector<std::string> lines =
        lines_of("fish", fmt::format("source {}\ncomplete -C '{}'\n", place_ / "fish", line));
    for (std::string& each : lines) each = each.substr(0, each.find('\t'));
    return lines;
  }

  ScratchPlace place_{"completions"};
};

using Words = std::vector<std::string>;

bool has(const Words& words, const std::string& word) {
  return std::ranges::count(words, word) > 0;
}

TEST_F(Completions, EveryVerbAndOptionIsInEveryScript) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    std::string script = read_file(place_ / shell);
    for (const HelpPage& page : help_tree())
      for (std::string option : page.options) {
        if (std::string_view(shell) == "fish")
          option = option.starts_with("--") ? "-l " + option.substr(2) : "-s " + option.substr(1);
        EXPECT_NE(script.find(option), std::string::npos) << shell << ": " << page.words << " " << option;
      }
  }
}

TEST_F(Completions, BashOffersVerbsAndOptions) {
  for (const HelpPage& page : help_tree()) {
    Words options = in_bash(page.words + " -");
    for (const std::string& option : page.options) EXPECT_TRUE(has(options, option)) << page.words << " " << option;
    if (page.verbs.empty()) continue;
    Words offered = in_bash(page.words + " ''"), expected = page.verbs;
    std::ranges::sort(offered);
    std::ranges::sort(expected);
    EXPECT_EQ(offered, expected) << page.words;
  }
  EXPECT_EQ(in_bash("tr"), Words{"train"});
  EXPECT_EQ(in_bash("bench ge"), Words{"gemm"});
  EXPECT_EQ(in_bash("train --ou"), Words{"--out"});
}

TEST_F(Completions, BashOffersValues) {
  EXPECT_EQ(in_bash("generate runs/a --device ''"), (Words{"auto", "cpu", "cuda"}));
  EXPECT_EQ(in_bash("generate runs/a --device = cu"), Words{"cuda"});
  EXPECT_EQ(in_bash("list mach"), Words{"machines"});
  EXPECT_EQ(in_bash("completions z"), Words{"zsh"});
  EXPECT_TRUE(has(in_bash("help ''"), "train"));
  EXPECT_TRUE(has(in_bash("plan a.toml --machine h1"), "h100-sxm"));
  EXPECT_TRUE(has(in_bash("plan a.toml --software ''"), "megatron-2021"));
  // A file: bash's own completion has it.
  EXPECT_EQ(in_bash("train a.toml --out ''"), Words{""});
}

TEST_F(Completions, BashOffersKeysOfTheConfig) {
  EXPECT_EQ(in_bash("train a.toml mesh.con"), Words{"mesh.context="});
  EXPECT_EQ(in_bash("train a.toml mesh.context = ''"), (Words{"ring", "ulysses"}));
  EXPECT_EQ(in_bash("train a.toml --ranks 2 mesh.context = u"), Words{"ulysses"});
  EXPECT_EQ(in_bash("data order a.toml train.reco"), Words{"train.recompute="});
  EXPECT_EQ(in_bash("bench gemm --config a.toml --set mesh.seq"), Words{"mesh.sequence_parallel="});
  EXPECT_EQ(in_bash("train a.toml mesh.overlap = t"), Words{"true"});
  EXPECT_TRUE(has(in_bash("train a.toml model.preset = gp"), "gpt2"));
  // Before there is a config, its keys are not offered.
  EXPECT_EQ(in_bash("train mesh.con"), Words{""});
}

TEST_F(Completions, BashIsToldWhoCompletes) {
  Words lines = lines_of("bash", fmt::format("source {}\ncomplete -p sextant\n", place_ / "bash"));
  EXPECT_EQ(lines, Words{"complete -o bashdefault -o default -F _sextant sextant"});
}

TEST_F(Completions, ZshReadsItsScript) {
  if (!has_program("zsh")) GTEST_SKIP() << "zsh is not installed";
  EXPECT_EQ(lines_of("zsh", fmt::format("zsh -n {} && echo read\n", place_ / "zsh")), Words{"read"});
}

TEST_F(Completions, FishOffersTheSame) {
  if (!has_program("fish")) GTEST_SKIP() << "fish is not installed";
  EXPECT_EQ(in_fish("sextant tr"), Words{"train"});
  EXPECT_EQ(in_fish("sextant bench ge"), Words{"gemm"});
  EXPECT_EQ(in_fish("sextant train --ou"), Words{"--out"});
  EXPECT_EQ(in_fish("sextant generate runs/a --device cu"), Words{"cuda"});
  EXPECT_TRUE(has(in_fish("sextant plan a.toml --machine h1"), "h100-sxm"));
  EXPECT_EQ(in_fish("sextant train a.toml mesh.context=u"), Words{"mesh.context=ulysses"});
  EXPECT_EQ(in_fish("sextant list mach"), Words{"machines"});
}

}  // namespace
}  // namespace sextant
