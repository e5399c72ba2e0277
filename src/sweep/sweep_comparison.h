// The runs of a sweep beside the best of them, as `sextant compare` has it.
#pragma once

#include <string>
#include <vector>

#include "sweep/sweep.h"
#include "watch/run_comparison.h"

namespace sextant {

// Of every run that has steps against the first, which ranks best; empty where there are no two such.
std::vector<RunComparison> compare_with_best(const SweepResult& result);

// Few comparisons in full, of many the sentences.
std::string sweep_comparison_text(const std::vector<RunComparison>& comparisons);

}  // namespace sextant
