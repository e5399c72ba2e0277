// The verbs that show what the program reads: help, man and completions of the command line, schema of the config.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/completions.h"
#include "app/json_output.h"
#include "app/man_page.h"
#include "app/usage_error.h"
#include "app/verb.h"
#include "config/json_schema.h"
#include "config/reference.h"

namespace sextant {

namespace {

struct HelpArguments {
  std::vector<std::string> verb;
  bool json = false;
};

void add_help_options(CLI::App& verb, HelpArguments& a) {
  verb.add_option("verb", a.verb, "the verb, and what stands below it, or a key of the config");
  verb.add_flag("--json", a.json,
                "print JSON: the verb's options and examples, and the verbs below it; of a key its meaning");
}

nlohmann::ordered_json option_json(const CommandOption& option) {
  nlohmann::ordered_json json{{"names", option.names}, {"about", option.about}};
  json["positional"] = option.positional;
  json["required"] = option.required;
  json["repeated"] = option.repeated;
  json["type"] = option.type.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(option.type);
  json["value_optional"] = option.value_optional;
  json["expected"] =
      option.expected.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(option.expected);
  json["default"] = option.initial.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(option.initial);
  if (!option.words.empty()) json["one_of"] = option.words;
  return json;
}

nlohmann::ordered_json command_json(const Command& command) {
  nlohmann::ordered_json json{{"verb", command.words}, {"about", command.about}, {"examples", command.examples}};
  json["options"] = nlohmann::ordered_json::array();
  for (const CommandOption& option : command.options) json["options"].push_back(option_json(option));
  json["verbs"] = nlohmann::ordered_json::array();
  for (const Command& verb : command.subcommands) json["verbs"].push_back(command_json(verb));
  return json;
}

nlohmann::ordered_json key_json(const Key& key) {
  return {{"key", key.name}, {"about", help_of(key)}, {"expected", expected_of(key)}, {"default", default_text(key)}};
}

// A key or a section of the config, such as train.recompute.
void print_help_of_keys(const std::string& name, const HelpArguments& a) {
  if (!a.json) {
    fmt::print("{}", config_help(name));
    return;
  }
  nlohmann::ordered_json keys = nlohmann::ordered_json::array();
  for (const Key& key : schema())
    if (key.name == name || key.name.starts_with(name + ".")) keys.push_back(key_json(key));
  print_json(keys);
}

// The same text as VERB --help.
void print_help(const HelpArguments& a, VerbContext& context) {
  const std::string name = a.verb.size() == 1 ? a.verb.front() : "";
  const bool is_below_section = name.find('.') != name.npos && is_section(name);  // `train` alone is a verb
  if (find_key(name) || is_below_section) return print_help_of_keys(name, a);
  const CLI::App& program = context.program;
  const CLI::App* verb = &program;
  std::string above;
  for (const std::string& word : a.verb) {
    above += (above.empty() ? "" : " ") + verb->get_name();
    verb = &subcommand_named(*verb, word);
  }
  if (a.json) return print_json(command_json(command_named(command_tree(program), a.verb)));
  // The program's own page would be taken for that of the verb being parsed, `help`.
  fmt::print("{}", verb == &program
                       ? program.get_formatter()->make_help(&program, program.get_name(), CLI::AppFormatMode::Normal)
                       : verb->help(above));
}

struct ManArguments {
  std::vector<std::string> verb;
  std::string all;  // a folder for all pages
};

void add_man_options(CLI::App& verb, ManArguments& a) {
  CLI::Option* words = verb.add_option("verb", a.verb, "the verb, and what stands below it [the program itself]");
  verb.add_option("--all", a.all, "write all pages into this folder instead")->excludes(words);
}

void print_man(const ManArguments& a, VerbContext& context) {
  Command root = command_tree(context.program);
  if (!a.all.empty()) return write_man_pages(root, a.all);
  fmt::print("{}", man_page(command_named(root, a.verb), root));
}

struct CompletionsArguments {
  std::string shell;
};

void add_completions_options(CLI::App& verb, CompletionsArguments& a) {
  verb.add_option("shell", a.shell, "the shell it is for")->required()->check(CLI::IsMember(completion_shells()));
}

void print_completions(const CompletionsArguments& a, VerbContext& context) {
  fmt::print("{}", completion_for(a.shell, command_tree(context.program)));
}

struct SchemaArguments {
  bool json = false;  // which it always is
};

void add_schema_options(CLI::App& verb, SchemaArguments& a) {
  verb.add_flag("--json", a.json, "print JSON, as it always does");
}

void print_schema(const SchemaArguments&) {
  fmt::print("{}", config_json_schema());
}

constexpr ValueFormat kManValues[] = {{"DIR", "a directory", "--all"}};

}  // namespace

const VerbDef help_verb{
    .words = "help",
    .summary = "Show the options of a verb, or what a config key does",
    .details = "",
    .examples = "sextant help train\nsextant help bench gemm\nsextant help train.recompute",
    .values = {},
    .declare = declare_verb<add_help_options, print_help>,
};

const VerbDef man_verb{
    .words = "man",
    .summary = "Print the manual page of a verb, in roff",
    .details = "",
    .examples = "sextant man bench gemm | man -l -",
    .values = kManValues,
    .declare = declare_verb<add_man_options, print_man>,
};

const VerbDef completions_verb{
    .words = "completions",
    .summary = "Print the script that completes commands in a shell",
    .details = "",
    .examples = "sextant completions bash > sextant.bash",
    .values = {},
    .declare = declare_verb<add_completions_options, print_completions>,
};

const VerbDef schema_verb{
    .words = "schema",
    .summary = "Print the JSON schema of the config, for editors",
    .details = "",
    .examples = "sextant schema > config.schema.json",
    .values = {},
    .declare = declare_verb<add_schema_options, print_schema>,
};

}  // namespace sextant
