// The ways in which `sextant launch` starts a run, and the table of which options each of them uses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/option_use.h"

namespace sextant {

enum class LaunchMode : uint8_t { slurm, mpirun, mpirun_container, srun, kubernetes };

const OptionTable& launch_options();

// UserError unless one launcher is named.
LaunchMode launch_mode(const std::vector<std::string>& given);

}  // namespace sextant
