// The end of a run on one rank: its last checkpoint, its outcome, and what is said of it.
#pragma once

#include <optional>

#include "base/exit_code.h"
#include "train/rank_services.h"

namespace sextant {

// Called by all ranks together when no step is under way. `stop`: as a monitor asked for. Fills in the result.
void end_run(RankServices& rank, std::optional<ExitCode> stop);

// The event of the outcome.
RunEvent outcome_event(const TrainResult& result);

}  // namespace sextant
