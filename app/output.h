// Standard output: of a run that is worth more than what it prints, and of verbs whose result it is.
#pragma once

#include <string_view>

#include "base/error.h"

namespace sextant {

// From now on what cannot be written to standard output (the reader of a pipe has left, the disk of a log is full) is
// dropped, reported once on standard error, instead of ending the process by SIGPIPE or an exception.
void outlive_standard_output();

// For verbs whose result is what they print: RunError when it could not be written, say, to a full disk.
void flush_standard_output();
RunError output_error(std::string_view why);

// By the locale: whether it shows more than ASCII.
bool terminal_has_utf8();

}  // namespace sextant
