// A step of a run, after the fact: its config, and which samples it read, from what the run left in its directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "config/run_config.h"

namespace sextant {

struct StepOfRun {
  RunConfig run;             // as it was in that step
  int64_t first_sample = 0;  // of its run.batch.sequences
};

// UserError when the directory is none of a run, or the run has no such step. Overrides change what the config is
// answered with, not which samples the step has.
StepOfRun find_step(const std::filesystem::path& out, int64_t step, const std::vector<std::string>& overrides = {});

}  // namespace sextant
