// The last values of every run for Prometheus (text format 0.0.4).
#pragma once

#include <cstdint>
#include <string>

#include "watch/run_set.h"

namespace sextant {

// sextant_FIELD{run="NAME"} for every numeric field, sextant_step, sextant_tokens, sextant_run_state.
std::string prometheus_text(const RunSet& runs, int64_t now);

}  // namespace sextant
