// Rejects settings whose results depend on the mesh when a run sets train.reproducible. Inside config/ only.
#pragma once

#include "config/complaints.h"
#include "models/spec.h"

namespace sextant {

void check_reproducible(const RunConfig& run, const ModelSpec& spec, Complaints& complaints);

}  // namespace sextant
