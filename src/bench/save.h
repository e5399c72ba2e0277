// From measurements to a machine's file: what a report found takes the place of what the machine said before.
#pragma once

#include <optional>

#include "bench/comm/comm.h"
#include "bench/result.h"
#include "cost/machine.h"

namespace sextant {

// GEMMs become its tables of GEMMs (those of experts, of a CPU, ops of its table), streams its efficiency of memory,
// those of its host what it says of that, attention its rates, the tiny kernel what is lost between two of them, ops
// (of a CPU) its table of ops.
void merge_into_machine(Machine& machine, const BenchReport& report);

// Of a CPU: its links, and what collectives and messages of each size take. Of accelerators: the share of their links'
// bandwidth that the longest collectives over all ranks reach, where an executor measured them.
void merge_message_times(Machine& machine, const CommReport& report);

// How fast each device writes a checkpoint where all write at once.
void merge_storage(Machine& machine, const BenchReport& report);

// The machine that comes with the program and has this device ("NVIDIA H200" has "H200 SXM"); nothing when there is
// none.
std::optional<Machine> known_machine_with(const std::string& device);

}  // namespace sextant
