// The machine and the software that plans assume: their options, and the target that Programs are lowered for.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "config/run_config.h"
#include "cost/machine.h"
#include "cost/software_profile.h"
#include "ir/plan.h"
#include "models/spec.h"

namespace sextant {

struct TargetOptions {
  std::string machine;   // a name of machines/ or a file; empty: none, and no times
  std::string software;  // whose software; empty: ours
};

// Adds --machine and --software, and returns --machine. Where it is not required, --software needs it.
CLI::Option* add_target_options(CLI::App& verb, TargetOptions& options);

// Our kernels on this machine, or a machine of machines/ under a software profile.
struct PlannedTarget {
  std::optional<Machine> machine;
  SoftwareProfile profile;
};
PlannedTarget planned_target(const TargetOptions& options, const ModelSpec& spec);
Target target_at(const PlannedTarget& place, const RunConfig& run, int ranks);

// Name of the trained model for a title: the preset's name, or its architecture.
std::string model_name(const RunConfig& run, const ModelSpec& spec);

}  // namespace sextant
