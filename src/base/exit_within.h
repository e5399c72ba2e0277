// A bound on how long a process may take to end: for calls that can hang, such as MPI_Abort when the launcher no longer
// answers, or the join of a thread that waits for a disk.
#pragma once

#include <chrono>

#include "base/exit_code.h"

namespace sextant {

// When `time` has passed the process ends with this code as it stands: nothing is flushed, no destructor runs. Called
// again, the earliest end counts.
void exit_within(std::chrono::milliseconds time, ExitCode code);

}  // namespace sextant
