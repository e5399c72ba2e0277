// Which rank an attempt failed by, from the heartbeats it left: one that says so, or the one for which the others were
// left waiting.
#pragma once

#include <optional>
#include <vector>

#include "train/health/heartbeat.h"

namespace sextant {

std::optional<LastBeat> culprit_of(const std::vector<LastBeat>& beats);

}  // namespace sextant
