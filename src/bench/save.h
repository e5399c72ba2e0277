// From measurements to a machine's file: what a report found takes the place of what the machine said before.
#pragma once

#include <optional>

#include "bench/result.h"
#include "cost/machine.h"

namespace sextant {

// Products become its table of products, streams its efficiency of memory, attention its rates, ops (of a CPU) its
// table of ops.
void lay_over(Machine& machine, const BenchReport& report);

// The machine that comes with the program and has this device ("NVIDIA H200" has "H200 SXM"); nothing when there is
// none.
std::optional<Machine> known_machine_with(const std::string& device);

}  // namespace sextant
