// The monitors of every run.
#pragma once

#include <memory>
#include <vector>

#include "train/monitor.h"

namespace sextant {

#define MONITOR(name) std::unique_ptr<Monitor> make_##name##_monitor(RankServices& rank);
#include "train/monitors/monitors.def"
#undef MONITOR

// Those of monitors.def, then `more`; called by all ranks together.
std::vector<std::unique_ptr<Monitor>> make_monitors(RankServices& rank, const std::vector<MakeMonitor>& more);

}  // namespace sextant
