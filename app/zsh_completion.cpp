#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/completions.h"

namespace sextant {

namespace {

constexpr std::string_view kZshBeginning = R"sh(#compdef sextant
# Completion of sextant for zsh, made by `sextant completions zsh`.

_sextant_names() { # WHAT: the names that `sextant list WHAT` prints
  local -a names
  names=(${(f)"$(sextant list $1 2>/dev/null | cut -d ' ' -f 1)"})
  compadd -a names
}

_sextant_machines() { _sextant_names machines; _files -g '*.toml' }
_sextant_software() { _sextant_names software }
_sextant_configs() { _files -g '*.toml' }

)sh";

// Inside single quotes; ':', '[' and ']' end a part of a specification of _arguments.
std::string zsh_escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out;
}

std::string zsh_action(const CommandOption& option, const Command& root) {
  switch (option.value) {
    case ArgumentKind::words:
    case ArgumentKind::verbs:
    case ArgumentKind::presets:
      return fmt::format("({})", fmt::join(words_of_argument(option, root), " "));
    case ArgumentKind::machines:
      return "_sextant_machines";
    case ArgumentKind::software:
      return "_sextant_software";
    case ArgumentKind::overrides:
      return "_sextant_overrides";
    case ArgumentKind::config:
      return "_sextant_configs";
    case ArgumentKind::file:
      return "_files";
    case ArgumentKind::none:
    case ArgumentKind::number:
      break;
  }
  return " ";
}

std::string zsh_specs(const Command& command, const Command& root) {
  std::string specs;
  for (const CommandOption& option : command.options) {
    std::string action = zsh_action(option, root);
    if (option.positional) {
      specs += fmt::format(" \\\n    '{}:{}:{}'", option.repeated ? "*" : "", option.names.front(), action);
      continue;
    }
    for (const std::string& name : option.names)
      specs += fmt::format(" \\\n    '{}{}[{}]{}'", option.repeated ? "*" : "", name, zsh_escaped(option.about),
                           option.value == ArgumentKind::none ? "" : fmt::format(":value:{}", action));
  }
  return specs;
}

std::string zsh_function_name(const Command& command) {
  std::string name = command.words.empty() ? "_sextant" : "_sextant_verb_" + command.words;
  std::ranges::replace(name, ' ', '_');
  return name;
}

std::string zsh_function(const Command& command, const Command& root) {
  if (command.subcommands.empty())
    return fmt::format("{}() {{\n  _arguments{}\n}}\n\n", zsh_function_name(command), zsh_specs(command, root));
  std::string verbs, cases;
  for (const Command& verb : command.subcommands) {
    verbs += fmt::format("\n    '{}:{}'", verb.name, zsh_escaped(verb.about));
    cases += fmt::format("    {}) {} ;;\n", verb.name, zsh_function_name(verb));
  }
  return fmt::format(R"sh({0}() {{
  local curcontext="$curcontext" state line
  typeset -A opt_args
  local -a verbs
  verbs=({1}
  )
  _arguments -C{2} \
    '1: :->verb' \
    '*:: :->rest'
  case $state in
    verb) _describe verb verbs ;;
    rest) case $words[1] in
{3}    esac ;;
  esac
}}

)sh",
                     zsh_function_name(command), verbs, zsh_specs(command, root), cases);
}

std::string zsh_overrides(const std::vector<OverrideKey>& keys) {
  std::string names, cases;
  for (const OverrideKey& key : keys) {
    names += fmt::format("\n    '{}='", key.key);
    if (!key.values.empty()) cases += fmt::format("      {}=) compadd -- {} ;;\n", key.key, fmt::join(key.values, " "));
  }
  return fmt::format(R"sh(_sextant_overrides() {{
  if compset -P 1 '*='; then
    case $IPREFIX in
{}      *) _files ;;
    esac
    return
  fi
  local -a keys
  keys=({}
  )
  compadd -S '' -a keys
}}

)sh",
                     cases, names);
}

}  // namespace

std::string zsh_completion(const Command& root, const std::vector<OverrideKey>& keys) {
  std::string text = std::string(kZshBeginning) + zsh_overrides(keys);
  for (const Command* command : all_commands(root)) text += zsh_function(*command, root);
  // As an autoloaded function it is called at once; sourced, it is made known.
  return text + "if [ \"$funcstack[1]\" = _sextant ]; then\n  _sextant \"$@\"\nelse\n  compdef _sextant sextant\nfi\n";
}

}  // namespace sextant
