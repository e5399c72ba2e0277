// The options of `sextant new`.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace sextant {

struct NewArguments {
  std::string text, model, preset;
  std::string out;  // empty: standard output
};
void new_verb(const NewArguments& arguments);

void add_new(CLI::App& app, NewArguments& arguments);

}  // namespace sextant
