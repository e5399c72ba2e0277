// The metrics of runs as one table of comma-separated values.
#pragma once

#include <string>
#include <vector>

#include "watch/run_set.h"

namespace sextant {

// A row for each step of each run: run, step, tokens, seconds (spent in steps) and the fields, in the order of
// metrics.jsonl; empty where a step has none. No `fields`: all that runs have. Lists are left out.
std::string csv_of_runs(const RunSet& runs, const std::vector<std::string>& fields);

}  // namespace sextant
