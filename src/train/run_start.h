// The start of a run on one rank: its weights and state, from a checkpoint, from another model or drawn, and its
// directory.
#pragma once

#include "train/rank_services.h"

namespace sextant {

// Called by all ranks together. Only when every rank has what it needs, and every check has passed, is anything changed
// on disk.
void start_run(RankServices& rank);

}  // namespace sextant
