// Which keys of a config go together and which do not.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "config/run_config.h"

namespace sextant {

constexpr int64_t kMaxRanks = int64_t{1} << 24;
constexpr int64_t kMaxSequences = int64_t{1} << 30;  // in a step
constexpr int64_t kMaxMicrobatch = int64_t{1} << 20;

// A step's schedule is written out, action by action for every stage and microbatch: so many are far beyond any run,
// and still planned in seconds.
int64_t most_microbatches(int64_t stages);

class Complaints;

// Everything that is wrong with the config as a whole; empty when it can be run. load_config has asked already.
std::vector<Complaint> check(const RunConfig& run);

// The same, leaving out what follows from values that could not be read.
void check_together(const RunConfig& run, Complaints& complaints);

}  // namespace sextant
