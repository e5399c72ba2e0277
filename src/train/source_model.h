// What training from a model directory asks of it, before anything is made of its weights.
#pragma once

#include <string>
#include <vector>

#include "config/run_config.h"
#include "models/spec.h"

namespace sextant {

// UserError where the directory of model.from would be trained otherwise than transformers trains it: with a head
// that the spec ignores, with an adapter. Leaves what the user should know of it, a line each.
std::vector<std::string> check_source_model(const RunConfig& run, const ModelSpec& spec);

}  // namespace sextant
