#include "app/documentation_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/completions.h"
#include "app/json_output.h"
#include "app/man_page.h"
#include "app/usage_error.h"
#include "config/json_schema.h"

namespace sextant {

namespace {

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

void print_man(const CLI::App& app, const DocumentationArguments& a) {
  Command root = command_tree(app);
  if (!a.man_all.empty()) return write_man_pages(root, a.man_all);
  fmt::print("{}", man_page(command_named(root, a.man_verb), root));
}

// The same text as VERB --help.
void print_help(const CLI::App& app, const DocumentationArguments& a) {
  const CLI::App* verb = &app;
  std::string above;
  for (const std::string& word : a.help_verb) {
    above += (above.empty() ? "" : " ") + verb->get_name();
    verb = &subcommand_named(*verb, word);
  }
  if (a.help_json) return print_json(command_json(command_named(command_tree(app), a.help_verb)));
  // The program's own page would be taken for that of the verb being parsed, `help`.
  fmt::print("{}", verb == &app ? app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal)
                                : verb->help(above));
}

}  // namespace

void add_documentation(CLI::App& app, DocumentationArguments& a) {
  CLI::App* help = app.add_subcommand("help", "Show the options of a verb: sextant help bench comm");
  help->add_option("verb", a.help_verb, "the verb, and what stands below it");
  help->add_flag("--json", a.help_json, "print JSON: the verb's options and examples, and the verbs below it");
  help->callback([&app, &a] { print_help(app, a); });

  CLI::App* man = app.add_subcommand("man", "Print the manual page of a verb, in roff");
  CLI::Option* verb = man->add_option("verb", a.man_verb, "the verb, and what stands below it [the program itself]");
  man->add_option("--all", a.man_all, "write all pages into this folder instead")->excludes(verb);
  man->callback([&app, &a] { print_man(app, a); });

  CLI::App* completions = app.add_subcommand("completions", "Print the script that completes command lines in a shell");
  completions->add_option("shell", a.shell, "the shell it is for")
      ->required()
      ->check(CLI::IsMember(completion_shells()));
  completions->callback([&app, &a] { fmt::print("{}", completion_for(a.shell, command_tree(app))); });

  CLI::App* schema = app.add_subcommand("schema", "Print the JSON schema of the config, for editors");
  schema->add_flag("--json", a.schema_json, "print JSON, as it always does");
  schema->callback([] { fmt::print("{}", config_json_schema()); });
}

}  // namespace sextant
