// Completion scripts for shells, from the table of verbs and options and that of config keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/command_tree.h"

namespace sextant {

// A config key that KEY=VALUE accepts, and its values.
struct OverrideKey {
  std::string key;                  // "mesh.tp"
  std::vector<std::string> values;  // where there is a fixed set
  std::string about;                // the first sentence of its help
};
std::vector<OverrideKey> override_keys();

// The words of an argument: its fixed set, or names of verbs or presets; empty where there is no such set.
std::vector<std::string> words_of_argument(const CommandOption& option, const Command& root);

// The names behind `sextant help`: of verbs and of what stands below them.
std::vector<std::string> verb_names(const Command& root);

std::string bash_completion(const Command& root, const std::vector<OverrideKey>& keys);
std::string zsh_completion(const Command& root, const std::vector<OverrideKey>& keys);
std::string fish_completion(const Command& root, const std::vector<OverrideKey>& keys);

// The shells there is one for.
std::vector<std::string> completion_shells();
std::string completion_for(std::string_view shell, const Command& root);

}  // namespace sextant
