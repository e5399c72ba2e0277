// The machine's file that a benchmark's --save names. Looked at before anything is measured, so that an hour of work is
// not lost to a mistyped name; written when all was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cost/machine.h"

namespace sextant {

// The machine in `file`; without such a file, `known`, renamed to the file's name. UserError when there is neither, and
// when the file could not be written.
Machine machine_to_save(const std::string& file, const std::optional<Machine>& known);

// UserError when the file is of a GPU and this is not (or the other way round).
enum class MeasuredOn : uint8_t { cpu, gpu };
void require_kind(const std::string& file, const Machine& machine, MeasuredOn measured);

// UserError when there is no such directory, or nothing may be written there.
void require_writable(const std::string& file);

void write_machine(const std::string& file, const Machine& machine);

// RunError with ExitCode::stopped, once what was measured is printed. Half a profile would look like a whole one: it is
// not saved to `file`, if one was named.
[[noreturn]] void report_interrupted(const std::string& file);

}  // namespace sextant
