// The options of `sextant new`.
#pragma once

#include <string>

#include "base/verbosity.h"

namespace CLI {
class App;
}

namespace sextant {

struct NewArguments {
  std::string text, model, preset;
  double minutes = 10;  // that training may take; 0: no limit
  std::string out;      // empty: standard output
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};
void new_verb(const NewArguments& arguments);

void add_new(CLI::App& app, NewArguments& arguments);

}  // namespace sextant
