// Output of --version: the number, the commit where it is known, and the versions of the parts that the program was
// built with.
#pragma once

#include <string>

namespace sextant {

// Both written by cmake/write_version.cmake.
const char* version_number();
const char* version_commit();  // empty outside of a checkout

std::string version_text();
std::string version_json();

}  // namespace sextant
