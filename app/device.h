// The executor that a config's `device` asks for.
#pragma once

#include <memory>

#include "config/run_config.h"
#include "exec/executor.h"

namespace sextant {

std::unique_ptr<Executor> executor_for(const RunConfig& run);

// What planning needs of it, with nothing started.
Target target_for(const RunConfig& run);

}  // namespace sextant
