// In which order the ranks of a ring share out a sequence (mesh.ring_order).
#pragma once

#include <string>

#include "config/run_config.h"
#include "ir/plan.h"
#include "models/spec.h"

namespace sextant {

// Why the run cannot have stripes; empty where it can.
std::string striping_problem(const RunConfig& run, const ModelSpec& spec);

// As given, else stripes where documents are masked and nothing speaks against them.
RingOrder ring_order_of(const RunConfig& run, const ModelSpec& spec);

}  // namespace sextant
