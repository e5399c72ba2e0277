// Whether a run fits the memory there is, asked before any of it is taken; and what would.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/programs.h"

namespace sextant {

struct Alternative {
  std::string overrides;  // as typed behind the config: "train.recompute=full batch.microbatch=4"
  Bytes arena;            // of the rank that needs most
};

// Of the rank that needs most in the space.
Bytes largest_arena(const RunPrograms& programs, MemorySpace space = MemorySpace::device);

// For a run that does not fit: up to `most` settings near its own whose largest rank needs no more than `room`; those
// that cost least time first.
std::vector<Alternative> settings_that_fit(const RunConfig& run, const ModelSpec& spec, const Target& target,
                                           Bytes room, size_t most = 3);

// Memory that an executor has. Without `host`, device and host are one memory.
struct Room {
  Bytes device;
  std::optional<Bytes> host;
};

// DoesNotFit with the numbers and the nearest settings that would fit.
void require_room(const RunConfig& run, const RunShape& shape, const RunPrograms& programs, const Target& target,
                  const Room& room);

}  // namespace sextant
