// The executors that a config's `device` asks for.
#pragma once

#include "config/run_config.h"
#include "exec/executor.h"
#include "train/train.h"

namespace sextant {

MakeExecutor executors_for(const RunConfig& run);

// What device=auto is here: "cpu" or "cuda".
std::string device_of_auto();

// One executor, for verbs without a config. `device` is auto, cpu or cuda.
std::unique_ptr<Executor> executor_for(const std::string& device, int threads);

// What planning needs of one of them, with nothing started: device=cuda is planned for without a GPU too. `ranks` share
// this machine.
Target target_for(const RunConfig& run, int ranks);

}  // namespace sextant
