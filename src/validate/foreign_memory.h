// What a device of a foreign run held at its peak: the Program's own buffers, each as wide as that software keeps it,
// with the scores and masks of unfused attention and the context of driver and libraries.
#pragma once

#include "plan/predict.h"
#include "validate/foreign.h"

namespace sextant {

struct ForeignMemory {  // bytes
  double weights = 0, gradients = 0, optimizer = 0;
  double saved = 0;    // activations kept from forward to backward, and the scores of unfused attention among them
  double working = 0;  // activations and gradients that come and go, logits
  double buffers = 0;  // of messages, that the software takes once
  double context = 0;  // driver, libraries, communicators

  double total() const { return weights + gradients + optimizer + saved + working + buffers + context; }
};

// Of the fullest rank.
ForeignMemory foreign_memory(const LoweredRun& lowered, const ForeignRun& run, const Machine& machine);

// What a run would report of it: nvidia-smi shows all of it, an allocator only knows what it has taken itself.
double reported_bytes(const ForeignMemory& memory, const SoftwareProfile& profile);

// With the headroom that the software's allocator needs.
bool fits(const ForeignMemory& memory, const SoftwareProfile& profile, const Machine& machine);

}  // namespace sextant
