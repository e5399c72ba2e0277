// Whether the processes that a launcher started are as many as the mesh has ranks.
#pragma once

#include <cstdint>
#include <string_view>

#include "config/run_config.h"

namespace sextant {

// UserError when not, with meshes near the config's that would fit. `who` counted them: "mpirun", "--ranks".
void require_world(const RunConfig& run, int64_t processes, std::string_view who);

}  // namespace sextant
