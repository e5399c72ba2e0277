// memory: gives every value a buffer and every buffer an offset in the arena. Values whose lifetimes do not meet share
// bytes; an op that may work in place does so where its input ends. Weights come first, then gradients, optimizer state
// and caches, in value order, so that Programs of one model (train, evaluate, decode) agree on where the weights are;
// everything else starts at or after `transient_from`.
#pragma once

#include "ir/plan.h"
#include "ir/program.h"

namespace sextant {

void plan_memory(Program& program, const Target& target, int64_t transient_from = 0);

// Where the arena's bytes go. The parts sum to the arena exactly.
struct MemoryUse {
  Bytes weights, gradients, optimizer, cache;
  Bytes saved;    // activations kept from forward to backward
  Bytes working;  // everything else that comes and goes: activations, feeds, scratch, and gaps between them
  Bytes total;
};

MemoryUse memory_use(const Program& program);

}  // namespace sextant
