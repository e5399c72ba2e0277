// bisect: of everything that was made in a step, what went wrong first. Outputs stand in an order in which each comes
// behind what it was made from, so the first is the cause and the others follow from it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "replay/step_observer.h"

namespace sextant {

// The first output with a number that is not finite; null where all are finite.
const ObservedOutput* first_non_finite(const std::vector<ObservedOutput>& ops);

// The first output of `ops` that is not bit for bit the same in `again`, another execution of the same Programs; null
// where all are.
const ObservedOutput* first_different(const std::vector<ObservedOutput>& ops, const std::vector<ObservedOutput>& again);

// Of two executions on any meshes and in any precision: outputs of ops that both have, over all ranks and microbatches.
struct OutputComparison {
  int64_t compared = 0;                   // outputs
  const ObservedOutput* first = nullptr;  // beyond the tolerance, in the order of the first execution; null: none
  double difference = 0;                  // of that one: the norm of the difference over the norm
  double largest = 0;                     // of all
};
OutputComparison compare(const std::vector<ObservedOutput>& ops, const std::vector<ObservedOutput>& other,
                         double tolerance);

// The token whose row of the output has the first number that is not finite.
struct TokenOfStep {
  int64_t sample = 0;    // of the run
  int64_t position = 0;  // in the sample
};
// Nothing where rows of the output are not tokens. `sequences` and `seq` are those of a microbatch over all ranks;
// `first_sample` is the step's.
std::optional<TokenOfStep> token_of(const ObservedOutput& output, int64_t sequences, int64_t seq, int64_t first_sample);

}  // namespace sextant
