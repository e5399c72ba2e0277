// A Trace as the JSON that Chrome's tracing page and Perfetto read: a process per rank, in it a row per lane. Times are
// in microseconds from the first event's start; an event's arguments give its path, step, and what rate it reached.
#pragma once

#include <string>

#include "base/trace.h"

namespace sextant {

std::string chrome_trace(const Trace& trace);

}  // namespace sextant
