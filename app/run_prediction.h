// Prediction for a run on this machine, made at its start: the plan that `sextant plan CONFIG --machine here` prints,
// kept in the run as plan.json, with the time of every op.
#pragma once

#include <filesystem>
#include <optional>

#include "base/verbosity.h"
#include "config/run_config.h"
#include "train/train.h"

namespace sextant {

// Writes OUT/plan.json and prints a line; where this machine was never measured, offers to. Never ends a run: what
// cannot be predicted is said. Returns the FLOP/s that the devices of the run together do at most, where that is known.
std::optional<double> predict_run(const RunConfig& run, const std::filesystem::path& out, Beginning beginning,
                                  Verbosity verbosity);

}  // namespace sextant
