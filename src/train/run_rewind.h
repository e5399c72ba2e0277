// A rewind of a run on one rank: back to a checkpoint from before a step, past the samples that led to it.
#pragma once

#include "train/rank_services.h"

namespace sextant {

// Called by all ranks together. False: there is no checkpoint to go back to, and the run is as it was.
bool rewind_run(RankServices& rank, int64_t step);

}  // namespace sextant
