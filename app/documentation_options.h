// The verbs that show what the program reads: help, man and completions of the command line, schema of the config.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sextant {

struct DocumentationArguments {
  std::vector<std::string> help_verb;
  bool help_json = false;
  std::vector<std::string> man_verb;
  std::string man_all;  // a folder for all pages
  std::string shell;
  bool schema_json = false;  // which it always is
};

void add_documentation(CLI::App& app, DocumentationArguments& arguments);

}  // namespace sextant
