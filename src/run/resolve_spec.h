// The model of a run, with everything that decides its shape.
#pragma once

#include "config/run_config.h"
#include "models/spec.h"

namespace sextant {

// The config's model with its vocabulary, which may be the tokenizer's; nothing is tokenized for it.
ModelSpec resolve_spec(const RunConfig& run);

}  // namespace sextant
