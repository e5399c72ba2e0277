#include "app/command_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>

#include "app/option_values.h"
#include "app/verb.h"

namespace sextant {

namespace {

struct NamedValue {
  std::string_view option;
  ArgumentKind kind;
};

// Options whose values are named elsewhere in the program. One name means the same in every verb.
constexpr std::array kNamedValues{
    NamedValue{"config", ArgumentKind::config},       NamedValue{"--config", ArgumentKind::config},
    NamedValue{"overrides", ArgumentKind::overrides}, NamedValue{"--set", ArgumentKind::overrides},
    NamedValue{"--machine", ArgumentKind::machines},  NamedValue{"--software", ArgumentKind::software},
    NamedValue{"verb", ArgumentKind::verbs},          NamedValue{"--preset", ArgumentKind::presets},
};

void read_value(CommandOption& option, const CLI::Option& declared, const std::string& verb_words) {
  const std::string described = declared.get_type_name();
  OptionValue value = value_of(declared, verb_words);
  option.type = described.substr(0, described.find(':'));
  option.placeholder = value.placeholder;
  option.expected = value.expected;
  option.words = value.words;
}

ArgumentKind kind_of(const CommandOption& option) {
  if (option.type.empty()) return ArgumentKind::none;
  if (!option.words.empty()) return ArgumentKind::words;
  for (const NamedValue& named : kNamedValues)
    if (std::ranges::count(option.names, named.option) > 0) return named.kind;
  bool number = option.type.starts_with("INT") || option.type.starts_with("UINT") || option.type.starts_with("FLOAT");
  return number ? ArgumentKind::number : ArgumentKind::file;
}

CommandOption option_of(const CLI::Option& declared, const std::string& verb_words) {
  CommandOption option;
  option.positional = declared.get_positional();
  if (option.positional) option.names = {declared.get_name()};
  for (const std::string& name : declared.get_lnames()) option.names.push_back("--" + name);
  for (const std::string& name : declared.get_snames()) option.names.push_back("-" + name);
  option.required = declared.get_required();
  option.value_optional = declared.get_expected_min() == 0;
  option.repeated = declared.get_expected_max() > 1;
  option.initial = declared.get_default_str();
  option.about = declared.get_description();
  if (declared.get_expected_max() != 0) read_value(option, declared, verb_words);
  option.value = kind_of(option);
  return option;
}

Command command_of(const CLI::App& app, const std::string& words) {
  Command command;
  command.words = words;
  command.name = app.get_name();
  command.about = app.get_description();
  command.examples = examples_of(words);
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) command.options.push_back(option_of(*option, words));  // else it is hidden
  for (const CLI::App* verb : app.get_subcommands(nullptr))
    command.subcommands.push_back(command_of(*verb, words.empty() ? verb->get_name() : words + " " + verb->get_name()));
  return command;
}

void append_all(const Command& command, std::vector<const Command*>& all) {
  all.push_back(&command);
  for (const Command& each : command.subcommands) append_all(each, all);
}

}  // namespace

Command command_tree(const CLI::App& app) {
  return command_of(app, "");
}

std::vector<const Command*> all_commands(const Command& root) {
  std::vector<const Command*> all;
  append_all(root, all);
  return all;
}

}  // namespace sextant
