// Whether a rank of a run fits its device: for our own software a comparison of bytes, for others' as far as their
// memory is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "config/run_config.h"
#include "cost/machine.h"
#include "cost/software_profile.h"
#include "plan/memory_interval.h"

namespace sextant {

// Origin of a plan's memory figures.
enum class MemoryBasis : uint8_t {
  exact,     // our own: what `train` allocates, to the byte
  estimate,  // of other software, from the buffers of our Programs (foreign_memory.h)
  programs,  // of our Programs, with room for the worst routing, in place of other software's with experts
  wide,      // our own, with values in 16 bits that a format which nothing runs yet would hold in fewer
};
std::string_view name_of(MemoryBasis basis);

// Without a machine a plan is of our own software.
MemoryBasis memory_basis(const Machine* machine, const SoftwareProfile* profile, const RunConfig& run, bool experts);

enum class MemoryFit : uint8_t { fits, may_fit, does_not_fit };
std::string_view name_of(MemoryFit fit);  // "fits", "may fit", "does not fit"

// `room` of a device for what is needed; without an interval the bytes are known.
MemoryFit memory_fit(double bytes, double room, const std::optional<MemoryInterval>& interval);

}  // namespace sextant
