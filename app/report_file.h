// Files that a verb writes beside its answer.
#pragma once

#include <cstdint>
#include <string>

#include "base/verbosity.h"

namespace sextant {

// Whether a file that was written is named on standard output: not where JSON or the result alone was asked for.
enum class FileRemarks : uint8_t { on, off };
template <class Arguments>
FileRemarks file_remarks(const Arguments& arguments) {
  return arguments.json || arguments.verbosity == Verbosity::quiet ? FileRemarks::off : FileRemarks::on;
}

void write_report(const std::string& file, const std::string& text, FileRemarks remarks);

}  // namespace sextant
