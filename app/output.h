// Standard output of a run that is worth more than what it prints.
#pragma once

namespace sextant {

// From now on what cannot be written to standard output (the reader of a pipe has left, the disk of a log is full) is
// dropped, reported once on standard error, instead of ending the process by SIGPIPE or an exception.
void outlive_standard_output();

}  // namespace sextant
