// One field of one run over its steps, with its events, as a picture.
#pragma once

#include <string>

#include "watch/watched_run.h"

namespace sextant {

std::string curve_svg(const WatchedRun& run, const MetricColumn& column);

}  // namespace sextant
