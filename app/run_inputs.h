// Inputs that `train` and `run` derive from the same arguments.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "train/faults/fault.h"

namespace sextant {

// --out, or runs/NAME.
std::filesystem::path run_directory(const RunConfig& run, const std::string& config, const std::string& given);

// --inject. UserError for what is no fault, or of a step that the run does not have.
std::vector<Fault> faults_of(const std::vector<std::string>& texts, const RunConfig& run);

}  // namespace sextant
