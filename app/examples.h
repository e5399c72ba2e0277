// Examples of every verb: command lines that work as they stand in a checkout (tests/app/examples_test.cpp runs them).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace sextant {

// Of "bench gemm", or of the program itself for "". BUG when there is none.
std::vector<std::string> examples_of(std::string_view words);

// Puts them under the help of every verb.
void add_examples(CLI::App& app);

}  // namespace sextant
