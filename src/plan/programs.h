// The Programs of a run, from its config: what `plan` prints, `explain` shows and `train` executes are these same objects.
#pragma once

#include <optional>

#include "config/run_config.h"
#include "models/spec.h"
#include "passes/lower.h"

namespace sextant {

// Train and evaluation share one arena: the weights are at the same offsets, and everything that comes and goes in one may
// lie where it does in the other.
struct RunPrograms {
  Program train;
  std::optional<Program> evaluate;  // absent when the run has no validation
  int64_t arena_bytes = 0;
};

struct RunShape {
  ModelSpec spec;        // with its vocabulary
  Mesh mesh;
  int64_t microbatches;  // per step
};

// UserError when the mesh asks for what no pass can do yet.
RunShape run_shape(const RunConfig& run, const ModelSpec& spec);

RunPrograms build_programs(const RunConfig& run, const RunShape& shape, const Target& target,
                           const decltype(LowerOptions::observe)& observe = {});

bool has_validation(const RunConfig& run);

}  // namespace sextant
