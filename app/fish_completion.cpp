#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/completions.h"

namespace sextant {

namespace {

constexpr std::string_view kFishBeginning = R"sh(# Completion of sextant for fish, made by `sextant completions fish`.

# The verb on the command line: "train", "bench gemm"; empty before one is given.
function __sextant_verb
    set -l verb
    for word in (commandline -opc)[2..]
        if contains -- (string join ' ' $verb $word) $__sextant_verbs
            set verb (string join ' ' $verb $word)
        else
            break
        end
    end
    echo "$verb"
end

function __sextant_at
    test (__sextant_verb) = "$argv[1]"
end

function __sextant_names
    sextant list $argv[1] 2>/dev/null | string replace -r '\s+' \t
end

function __sextant_overrides
    printf '%s\n' $__sextant_overrides
end

complete -c sextant -f
)sh";

std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// How an option, or a positional, gets its value.
std::string fish_value(const CommandOption& option, const Command& root) {
  switch (option.value) {
    case ArgumentKind::none:
      return "";
    case ArgumentKind::words:
    case ArgumentKind::verbs:
    case ArgumentKind::presets:
      return fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(words_of_argument(option, root), " "))));
    case ArgumentKind::machines:
      return " -r -F -a '(__sextant_names machines)'";
    case ArgumentKind::software:
      return " -x -a '(__sextant_names software)'";
    case ArgumentKind::overrides:
      return " -x -a '(__sextant_overrides)'";
    case ArgumentKind::number:
      return " -x";
    case ArgumentKind::config:
    case ArgumentKind::file:
      break;
  }
  return " -r -F";
}

std::string fish_option(const CommandOption& option, const std::string& at, const Command& root) {
  std::string line = at;
  if (!option.positional) {
    for (const std::string& name : option.names)
      line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    line += fish_value(option, root);
  } else if (option.value == ArgumentKind::file || option.value == ArgumentKind::config) {
    return at + " -F\n";
  } else {
    // A positional needs no -x or -r: those are for what stands behind an option.
    std::string value = fish_value(option, root);
    if (size_t words = value.find(" -a "); words != std::string::npos) line += value.substr(words);
  }
  return fmt::format("{} -d {}\n", line, fish_quoted(option.about));
}

}  // namespace

std::string fish_completion(const Command& root, const std::vector<OverrideKey>& keys) {
  std::string verbs = "set -g __sextant_verbs", overrides = "set -g __sextant_overrides", lines;
  for (const OverrideKey& key : keys) {
    if (key.values.empty()) overrides += fmt::format(" \\\n    {}=\\t{}", key.key, fish_quoted(key.about));
    for (const std::string& value : key.values)
      overrides += fmt::format(" \\\n    {}={}\\t{}", key.key, value, fish_quoted(key.about));
  }
  for (const Command* command : all_commands(root)) {
    if (!command->words.empty()) verbs += " " + fish_quoted(command->words);
    std::string at = fmt::format("complete -c sextant -n \"__sextant_at {}\"", fish_quoted(command->words));
    for (const Command& verb : command->subcommands)
      lines += fmt::format("{} -a {} -d {}\n", at, verb.name, fish_quoted(verb.about));
    for (const CommandOption& option : command->options) lines += fish_option(option, at, root);
  }
  return fmt::format("{}{}\n{}\n{}", kFishBeginning, verbs, overrides, lines);
}

}  // namespace sextant
