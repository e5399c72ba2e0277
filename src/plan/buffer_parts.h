// The part of a rank's memory that each buffer of a Program counts to: weights, activations, messages in flight, …
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
