// The verbs that show what the program reads: help, man and completions of the command line, schema of the config.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sextant {

struct DocumentationArguments {
  std::vector<std::string> help_verb;  // never read: `help VERB` is parsed as `VERB --help`
  std::vector<std::string> man_verb;
  std::string man_all;  // a folder for all pages
  std::string shell;
};

void add_documentation(CLI::App& app, DocumentationArguments& arguments);

// `sextant help VERB` is `sextant VERB --help`.
std::vector<const char*> help_as_option(const CLI::App& app, int argc, char** argv);

}  // namespace sextant
