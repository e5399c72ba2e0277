// The fenced blocks of a page of documentation. The words behind the fence say what a block holds:
//   ```sh             commands that a test runs, in order, in one directory per page
//   ```sh steps=20    the same, but every `sextant train` with train.steps=20 and a short warmup: the page has a long
//   run
//   ```sh mpi         the same, where there is an mpirun
//   ```sh peers       the same, where there is a Python with PyTorch and transformers (scripts/peers)
//   ```sh gpu         needs a GPU: what it trains is planned for one instead
//   ```sh elsewhere   needs a cluster, the network or an administrator: only options and files are looked up
//   ```text exact     what the commands above it print; a line "…" stands for any number of lines
//   ```text, ```json, ```toml, ```python    to be read
#pragma once

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"

namespace sextant {

struct PageBlock {
  int line = 0;                    // of the fence
  std::string language;            // "sh"
  std::vector<std::string> words;  // what follows it
  std::string text;

  bool has(const std::string& word) const { return std::find(words.begin(), words.end(), word) != words.end(); }
  // "20" of "steps=20"; empty when there is none.
  std::string value(const std::string& name) const {
    for (const std::string& word : words)
      if (word.starts_with(name + "=")) return word.substr(name.size() + 1);
    return "";
  }
};

inline std::vector<PageBlock> blocks_of(const std::string& page) {
  std::vector<PageBlock> blocks;
  std::istringstream lines(page);
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.starts_with("```")) {
      if (inside) blocks.back().text += line + "\n";
      continue;
    }
    inside = !inside;
    if (!inside) continue;
    PageBlock block{number, {}, {}, {}};
    std::istringstream words(line.substr(3));
    words >> block.language;
    for (std::string word; words >> word;) block.words.push_back(word);
    blocks.push_back(std::move(block));
  }
  return blocks;
}

// The commands of a block of shell: lines joined at a backslash, without comments and blank lines.
inline std::vector<std::string> commands_of(const PageBlock& block) {
  std::vector<std::string> commands;
  std::istringstream lines(block.text);
  std::string command;
  for (std::string line; std::getline(lines, line);) {
    bool continues = line.ends_with("\\");
    if (continues) line.pop_back();
    command += line;
    if (continues) continue;
    if (!command.empty() && command[0] != '#') commands.push_back(command);
    command.clear();
  }
  return commands;
}

}  // namespace sextant
