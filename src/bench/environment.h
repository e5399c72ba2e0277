// Where a benchmark ran: date, host, compiler, device and its libraries, clocks and power. What cannot be read says so.
#pragma once

#include "bench/result.h"
#include "exec/probe.h"

namespace sextant {

Environment environment_of(const DeviceProbe& probe);

std::string today();  // "2026-11-15"

}  // namespace sextant
