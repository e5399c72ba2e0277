// What each buffer of a Program counts to in a rank's memory: weights, activations, messages on their way, …
#pragma once

#include <vector>

#include "ir/program.h"
#include "plan/memory_moments.h"

namespace sextant {

using MemoryPart = int64_t MemoryParts::*;

// By number of the buffer. Gathered weights and what is on its way to or from others is communication.
std::vector<MemoryPart> parts_of_buffers(const Program& program);

// Whether such a buffer is held from step to step, whatever runs.
bool is_held_throughout(BufferClass kind);

}  // namespace sextant
