// What a device of a foreign run held at its peak: the Program's own buffers, each as wide as that software keeps it, with the
// scores and masks of unfused attention and the context of driver and libraries.
#pragma once

#include "plan/foreign.h"
#include "plan/predict.h"

namespace sextant {

double foreign_memory(const LoweredRun& lowered, const ForeignRun& run, const Machine& machine);

}  // namespace sextant
