// Files that a verb writes, looked at before its work begins rather than after hours of it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace sextant {

// UserError when the folder is not there or may not be written to, or when `file` is a folder itself. `option` is how
// the file was named: "--out".
void require_output_file(const std::string& option, const std::string& file);

// For CLI::Option::check.
CLI::Validator output_file(const std::string& option);

}  // namespace sextant
