// Requirements of training from a model directory, checked before its weights are used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "exec/executor.h"
#include "models/spec.h"

namespace sextant {

// UserError where the directory of model.from would be trained otherwise than transformers trains it: with a head
// that the spec ignores, with an adapter; or is dense, and not one from which the spec's model with experts can start.
// Leaves what the user should know of it, a line each.
std::vector<std::string> check_source_model(const RunConfig& run, const ModelSpec& spec);

// Of the weights in a model directory, wherever it is: names, types and shapes of all tensors, and the values of models
// below 64 MiB. Of larger ones, 64 KiB at both ends of up to 1,024 tensors, so that a model of terabytes costs seconds.
std::string identity_of_weights(const std::filesystem::path& directory);

// Whether a model with experts starts from a dense one (models/upcycle.h).
bool is_upcycled(const ModelSpec& spec, const ModelSpec& source);

// The weights of model.from. Of an upcycled model all others are drawn first.
enum class SourceModel : uint8_t { same, upcycled };
SourceModel load_source_model(Bound& bound, const RunConfig& run, const ModelSpec& spec);

}  // namespace sextant
