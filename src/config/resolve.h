// From the [model] section to a ModelSpec: a preset, a Hugging Face directory or an architecture, with the given
// fields laid over it and what nobody gave derived from the rest.
#pragma once

#include "config/run_config.h"
#include "models/dropout_rates.h"
#include "models/spec.h"

namespace sextant {

class Complaints;

// The vocab is 0 when only the tokenizer can tell it. UserError with everything that is wrong with the model.
ModelSpec resolve_model(const RunConfig& run);

// The rates that the run trains with: its own, else those of the directory that it starts from. UserError where that
// has rates which are none.
DropoutRates resolve_dropout(const RunConfig& run);

// As far as it can be told; what is wrong goes to the complaints, and sizes that nobody knows stay 0.
ModelSpec draft_model(const RunConfig& run, Complaints& complaints);

}  // namespace sextant
