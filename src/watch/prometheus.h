// The last values of runs in Prometheus' text format.
#pragma once

#include <cstdint>

#include "watch/answer_body.h"
#include "watch/run_set.h"

namespace sextant {

// Every numeric field as a gauge, sextant_FIELD{run="NAME"}, and sextant_run_state; one metric a piece. Names of runs
// are UTF-8, bytes that are not are written as \xHH; runs of one name are told apart by their directories.
BodyPieces prometheus_pieces(const RunSet& runs, int64_t now);

}  // namespace sextant
