#include "app/documentation_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string_view>

#include "app/completions.h"
#include "app/man_page.h"
#include "app/usage_error.h"
#include "config/json_schema.h"

namespace sextant {

namespace {

void print_man(const CLI::App& app, const DocumentationArguments& a) {
  Command root = command_tree(app);
  if (!a.man_all.empty()) return write_man_pages(root, a.man_all);
  fmt::print("{}", man_page(command_named(root, a.man_verb), root));
}

}  // namespace

void add_documentation(CLI::App& app, DocumentationArguments& a) {
  CLI::App* help = app.add_subcommand("help", "Show the options of a verb: sextant help bench comm");
  help->add_option("verb", a.help_verb, "the verb, and what stands below it");

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
  schema->callback([] { fmt::print("{}", config_json_schema()); });
}

std::vector<const char*> help_as_option(const CLI::App& app, int argc, char** argv) {
  std::vector<const char*> arguments(argv, argv + argc);
  if (argc < 2 || std::string_view(argv[1]) != "help" || (argc > 2 && argv[2][0] == '-')) return arguments;
  const CLI::App* verb = &app;
  for (int i = 2; i < argc; ++i) verb = &subcommand_named(*verb, argv[i]);
  arguments.erase(arguments.begin() + 1);
  arguments.push_back("--help");
  return arguments;
}

}  // namespace sextant
