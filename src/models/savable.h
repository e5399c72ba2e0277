// Whether checkpoints of a model can hold what it is.
#pragma once

#include <vector>

#include "models/spec.h"

namespace sextant {

// The fields that the config.json of the spec's model type would not give back: a run with them could be trained, and
// its checkpoint would be another model. The spec must be without problems_of; a vocab of 0 counts as one not yet
// known.
std::vector<SpecProblem> problems_of_saving(const ModelSpec& spec);

}  // namespace sextant
