// `train --minutes`: as many steps as there is time for, by steps that are timed on this machine first. And how such a
// step is timed, which `new` asks too.
#pragma once

#include <filesystem>

#include "base/verbosity.h"
#include "config/run_config.h"

namespace sextant {

// The median seconds of some training steps of the run, on random tokens, all ranks as threads of this process.
double timed_step(const RunConfig& run);

// Sets train.steps, and warm-up and decay of the learning rate in proportion. A run that is resumed keeps what it began
// with, by the config.toml beside its checkpoint. UserError where train.steps is given on the command line as well, or
// where the ranks are processes.
void fit_to_minutes(RunConfig& run, double minutes, const std::filesystem::path& out, Verbosity verbosity);

}  // namespace sextant
