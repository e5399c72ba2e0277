// Which keys of a config go together and which do not.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "config/run_config.h"

namespace sextant {

constexpr int64_t kMaxSequences = int64_t{1} << 30;  // in a step
constexpr int64_t kMaxMicrobatch = int64_t{1} << 20;

class Complaints;

// Everything that is wrong with the config as a whole; empty when it can be run. load_config has asked already.
std::vector<Complaint> check(const RunConfig& run);

// The same, leaving out what follows from values that could not be read.
void check_together(const RunConfig& run, Complaints& complaints);

}  // namespace sextant
