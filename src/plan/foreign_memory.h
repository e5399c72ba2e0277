// Memory of a device in a foreign run at its peak: the Program's own buffers, each in the width that the software
// keeps, with the scores and masks of unfused attention and the context of driver and libraries.
#pragma once

#include <map>
#include <span>

#include "config/run_config.h"
#include "cost/machine.h"
#include "cost/software_profile.h"
#include "plan/memory_moments.h"
#include "run/programs.h"

namespace sextant {

struct ForeignMemory {  // bytes
  double weights = 0, gradients = 0, optimizer = 0;
  double saved = 0;    // activations kept from forward to backward, and the scores of unfused attention among them
  double working = 0;  // activations and gradients that come and go, logits
  double buffers = 0;  // of messages, that the software takes once
  double context = 0;  // driver, libraries, communicators

  double total() const { return weights + gradients + optimizer + saved + working + buffers + context; }
};

// Of one rank, and of the fullest.
ForeignMemory foreign_memory(const Program& program, const RunConfig& run, const SoftwareProfile& profile,
                             const Machine& machine);
ForeignMemory foreign_memory(const LoweredRun& lowered, const RunConfig& run, const SoftwareProfile& profile,
                             const Machine& machine);

// Bytes that the software has in addition to the buffers of our Program: `saved` for backward, of one microbatch, and
// `working`, which is freed again.
struct ForeignExtra {
  double saved = 0, working = 0;
};
ForeignExtra foreign_extra(const Program& program, const RunConfig& run, const SoftwareProfile& profile);

// Bytes that a run would report: nvidia-smi shows all of them, an allocator only knows its own allocations.
double reported_bytes(const ForeignMemory& memory, const SoftwareProfile& profile);

// Other software frees what a microbatch keeps of a chunk when its backward has run; our Program has room for the most
// that each chunk ever keeps, at whatever time.
struct KeptLayers {
  double of_a_microbatch = 0;
  double at_once = 0;   // of all chunks and microbatches, at the most
  double reserved = 0;  // the most of each chunk, together

  double share_at_once() const { return reserved > 0 ? at_once / reserved : 1; }
};
KeptLayers kept_layers(std::span<const Action> schedule, const std::map<int, double>& layers);  // layers by chunk

// The same as a plan has it.
MemoryParts parts_of(const ForeignMemory& memory);

// How much of them the software keeps for each byte of our Program's.
double foreign_gradients(const SoftwareProfile& profile);
double foreign_optimizer(const SoftwareProfile& profile);

// With the headroom that the software's allocator needs.
bool fits(const ForeignMemory& memory, const SoftwareProfile& profile, const Machine& machine);

}  // namespace sextant
