// memory: gives every value a buffer and every buffer an offset in the arena of its space. Values whose lifetimes do
// not meet share bytes; an op that may work in place does so where its input ends. Weights come first, then gradients,
// optimizer state and caches, in value order; everything else behind them.
#pragma once

#include "ir/plan.h"
#include "ir/program.h"

namespace sextant {

// `beside` is a Program of the same model that shares the arena: what both keep lies where it has it, and nothing else
// meets what it keeps.
void plan_memory(Program& program, const Target& target, const Program* beside = nullptr);

// Where the bytes of the device's arena go. The parts sum to the arena exactly.
struct MemoryUse {
  Bytes weights, gradients, optimizer, cache;
  Bytes saved;    // activations kept from forward to backward
  Bytes working;  // everything else that comes and goes: activations, feeds, scratch, and gaps between them
  Bytes total;
};

MemoryUse memory_use(const Program& program);

}  // namespace sextant
