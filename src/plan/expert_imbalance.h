// How unevenly tokens are taken to go to experts, as a person says it: "balanced", a ratio of the busiest rank to the
// mean, or the metrics.jsonl of a run that measured it.
#pragma once

#include <string>

namespace sextant {

struct ExpertImbalance {
  double ratio = 1;                // of the busiest rank to the mean
  std::string about = "balanced";  // in words, for a plan
};

// UserError at `place` for what is none of them.
ExpertImbalance read_expert_imbalance(const std::string& text, const std::string& place);

}  // namespace sextant
