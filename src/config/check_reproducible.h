// What cannot be the same on every mesh, where a run asks for that (train.reproducible). Inside config/ only.
#pragma once

#include "config/complaints.h"
#include "models/spec.h"

namespace sextant {

void check_reproducible(const RunConfig& run, const ModelSpec& spec, Complaints& complaints);

}  // namespace sextant
