#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "app/completions.h"

namespace sextant {

namespace {

constexpr std::string_view kBashBeginning = R"sh(# Completion of sextant for bash, made by `sextant completions bash`.

_sextant_values() { # WORDS: those that begin as the value does
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$value")
}

_sextant_list() { # WHAT: the names that `sextant list WHAT` prints
  _sextant_values "$("${COMP_WORDS[0]}" list "$1" 2> /dev/null | cut -d ' ' -f 1)"
}

)sh";

// After it, `words` are the words with what bash split at '=' put together again, `path` is the verb.
constexpr std::string_view kBashWords = R"sh(_sextant() {
  local i word glue=0 at=1 path='' name='' value verbs='' options='' overrides=0 positional=''
  local -a words=()
  COMPREPLY=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == '=' && $i -gt 1 ]]; then
      words[${#words[@]} - 1]+='='
      glue=1
    elif ((glue)); then
      words[${#words[@]} - 1]+=$word
      glue=0
    else
      words+=("$word")
    fi
  done
  local last=$((${#words[@]} - 1))
  value=${words[last]}
  while ((at < last)); do
    case "$path ${words[at]}" in
      @VERBS@) path+=" ${words[at]}" ;;
      *) break ;;
    esac
    ((at++))
  done
)sh";

constexpr std::string_view kBashEnd = R"sh(  if [[ $value == --*=* ]]; then
    name=${value%%=*}
    value=${value#*=}
  elif [[ ${words[last - 1]} == -* ]]; then
    name=${words[last - 1]}
  fi
  if [[ -n $name ]]; then
    case "$path $name" in
@OPTIONS@    esac
  fi
  if [[ $value == -* ]]; then
    _sextant_values "$options"
  elif [[ -n $verbs ]]; then
    _sextant_values "$verbs"
  elif [[ -n $positional ]]; then
    _sextant_values "$positional"
  elif ((overrides)); then
    for ((i = at; i < last; i++)); do
      [[ ${words[i]} == *.toml ]] && { _sextant_overrides; return; }
    done
  fi
}

complete -o bashdefault -o default -F _sextant sextant
)sh";

std::string bash_quoted(const std::vector<std::string>& words) {
  return fmt::format("'{}'", fmt::join(words, " "));
}

// One function for all verbs: the keys, or the values of the key that stands before '='.
std::string bash_overrides(const std::vector<OverrideKey>& keys) {
  std::vector<std::string> names;
  std::string cases;
  for (const OverrideKey& key : keys) {
    names.push_back(key.key + "=");
    if (!key.values.empty()) cases += fmt::format("    {}) words={} ;;\n", key.key, bash_quoted(key.values));
  }
  return fmt::format(R"sh(_sextant_overrides() {{
  local key=${{value%%=*}} words=''
  if [[ $value != *=* ]]; then
    _sextant_values {}
    compopt -o nospace 2> /dev/null
    return
  fi
  case $key in
{}    *) return ;;
  esac
  value=${{value#*=}}
  _sextant_values "$words"
  # Where '=' does not end a word, the key is part of what is completed.
  [[ $COMP_WORDBREAKS == *=* ]] || COMPREPLY=("${{COMPREPLY[@]/#/$key=}}")
}}

)sh",
                     bash_quoted(names), cases);
}

// The shell variables that the command's case sets.
std::string bash_words_of(const Command& command, const Command& root) {
  std::vector<std::string> options, verbs;
  std::string text;
  bool overrides = false;
  for (const CommandOption& option : command.options) {
    if (!option.positional) options.insert(options.end(), option.names.begin(), option.names.end());
    if (option.value == ArgumentKind::overrides && option.positional) overrides = true;
    std::vector<std::string> words = words_of_argument(option, root);
    if (option.positional && !words.empty()) text += fmt::format(" positional={}", bash_quoted(words));
  }
  for (const Command& verb : command.subcommands) verbs.push_back(verb.name);
  if (!verbs.empty()) text += fmt::format(" verbs={}", bash_quoted(verbs));
  return fmt::format("options={}{}{}", bash_quoted(options), text, overrides ? " overrides=1" : "");
}

std::string bash_action(const CommandOption& option, const Command& root) {
  switch (option.value) {
    case ArgumentKind::words:
    case ArgumentKind::verbs:
    case ArgumentKind::presets:
      return fmt::format("_sextant_values {}; return", bash_quoted(words_of_argument(option, root)));
    case ArgumentKind::machines:
      return "_sextant_list machines; return";
    case ArgumentKind::software:
      return "_sextant_list software; return";
    case ArgumentKind::overrides:
      return "_sextant_overrides; return";
    default:
      return "return";  // nothing, for which bash offers files
  }
}

}  // namespace

std::string bash_completion(const Command& root, const std::vector<OverrideKey>& keys) {
  std::vector<std::string> verbs;
  std::string cases;
  std::map<std::string, std::vector<std::string>> options_by_action;
  for (const Command* command : all_commands(root)) {
    std::string path = command->words.empty() ? "" : " " + command->words;
    if (!path.empty()) verbs.push_back(fmt::format("'{}'", path));
    cases += fmt::format("    '{}') {} ;;\n", path, bash_words_of(*command, root));
    for (const CommandOption& option : command->options)
      if (!option.positional && option.value != ArgumentKind::none)
        for (const std::string& name : option.names)
          options_by_action[bash_action(option, root)].push_back(fmt::format("'{} {}'", path, name));
  }
  std::string actions;
  for (const auto& [action, names] : options_by_action)
    actions += fmt::format("      {}) {} ;;\n", fmt::join(names, " | "), action);
  auto filled = [](std::string_view text, std::string_view mark, const std::string& with) {
    std::string out(text);
    return out.replace(out.find(mark), mark.size(), with);
  };
  return std::string(kBashBeginning) + bash_overrides(keys) +
         filled(kBashWords, "@VERBS@", fmt::format("{}", fmt::join(verbs, " | "))) + "  case \"$path\" in\n" + cases +
         "  esac\n" + filled(kBashEnd, "@OPTIONS@", actions);
}

}  // namespace sextant
