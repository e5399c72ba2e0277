// Which keys of a config go together and which do not.
#pragma once

#include <vector>

#include "base/error.h"
#include "config/run_config.h"

namespace sextant {

class Complaints;

// Everything that is wrong with the config as a whole; empty when it can be run. load_config has asked already.
std::vector<Complaint> check(const RunConfig& run);

// The same, leaving out what follows from values that could not be read.
void check_together(const RunConfig& run, Complaints& complaints);

}  // namespace sextant
