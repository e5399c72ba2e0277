// The target that a run's config asks for: what `train` lowers for and what `plan` plans with, from the same functions.
#pragma once

#include "config/run_config.h"
#include "targets/kernel_needs.h"

namespace sextant {

Determinism determinism_of(const RunConfig& run);

// Threads of each rank when `ranks` of them share a machine: train.threads (or its cores) in equal parts. 0 cores: as
// many as this machine has.
int threads_per_rank(const RunConfig& run, int ranks, int cores = 0);

// device=cuda, with or without a GPU here.
Target cuda_target_of(const RunConfig& run);
// device=cpu.
Target cpu_target_of(const RunConfig& run, int ranks, int cores = 0);

}  // namespace sextant
