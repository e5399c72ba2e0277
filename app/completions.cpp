#include "app/completions.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "config/schema.h"
#include "models/presets.h"

namespace sextant {

namespace {

struct Shell {
  std::string_view name;
  std::string (*script)(const Command&, const std::vector<OverrideKey>&);
};
constexpr std::array kShells{Shell{"bash", bash_completion}, Shell{"zsh", zsh_completion},
                             Shell{"fish", fish_completion}};

std::string first_sentence(std::string_view help) {
  size_t end = std::min(help.find(". "), help.find("; "));
  std::string text(help.substr(0, end));
  if (text.ends_with('.')) text.pop_back();
  std::erase(text, '`');
  return text;
}

std::vector<std::string> values_of(const Key& key) {
  if (key.kind == Kind::flag) return {"true", "false"};
  std::vector<std::string> values;
  for (std::string_view word : words_of(key)) values.emplace_back(word);
  if (key.name == "model.preset")
    for (const Preset& preset : presets()) values.emplace_back(preset.name);
  return values;
}

}  // namespace

std::vector<OverrideKey> override_keys() {
  std::vector<OverrideKey> keys;
  for (const Key& key : schema()) keys.push_back({std::string(key.name), values_of(key), first_sentence(key.help)});
  return keys;
}

std::vector<std::string> verb_names(const Command& root) {
  std::set<std::string> names;
  for (const Command* command : all_commands(root))
    if (!command->words.empty()) names.insert(command->name);
  return {names.begin(), names.end()};
}

std::vector<std::string> words_of_argument(const CommandOption& option, const Command& root) {
  if (option.value == ArgumentKind::verbs) return verb_names(root);
  if (option.value == ArgumentKind::presets) return values_of(*find_key("model.preset"));
  return option.words;
}

std::vector<std::string> completion_shells() {
  std::vector<std::string> names;
  for (const Shell& shell : kShells) names.emplace_back(shell.name);
  return names;
}

std::string completion_for(std::string_view shell, const Command& root) {
  const Shell* found = std::ranges::find(kShells, shell, &Shell::name);
  BUG_IF(found == kShells.end(), "there is no completion for {}", shell);
  return found->script(root, override_keys());
}

}  // namespace sextant
