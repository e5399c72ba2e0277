// The command line as data: every verb with its options, read off the declarations themselves. Completions and man
// pages are written from it, so that they cannot name what is not there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sextant {

// Kinds of values, by the completions that a shell can offer.
enum class ArgumentKind : uint8_t {
  none,       // a flag
  words,      // one of CommandOption::words
  file,       // any text; shells offer files
  number,     // nothing to offer
  config,     // a run's TOML file
  overrides,  // KEY=VALUE of the config
  machines,   // a name that `sextant list machines` prints, or a file
  software,   // a name that `sextant list software` prints
  presets,    // a published model, as model.preset names it
  verbs,      // names of verbs, as after `sextant help`
};

struct CommandOption {
  std::vector<std::string> names;  // "--out", or the name of a positional: "config"
  bool positional = false, required = false, repeated = false, value_optional = false;
  ArgumentKind value = ArgumentKind::none;
  std::vector<std::string> words;  // the fixed set, where there is one
  std::string type;                // "INT", "TEXT", "FILE"; empty for a flag
  std::string placeholder;         // "RANKS", "FILE"; empty for a flag
  std::string expected;            // what it takes, in words; empty for a flag
  std::string initial;             // the default as text; empty: none, or the description says it
  std::string about;
};

struct Command {
  std::string words;  // "bench gemm"; empty for the program itself
  std::string name;   // the last of them
  std::string about;
  std::vector<std::string> examples;  // command lines that work as they stand
  std::vector<CommandOption> options;
  std::vector<Command> subcommands;
};

Command command_tree(const CLI::App& app);

// The command and all below it, each before its subcommands.
std::vector<const Command*> all_commands(const Command& root);

}  // namespace sextant
