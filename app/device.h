// The executors that a config's `device` asks for.
#pragma once

#include "config/run_config.h"
#include "exec/executor.h"
#include "train/train.h"

namespace sextant {

MakeExecutor executors_for(const RunConfig& run);

// The device that device=auto selects on this machine.
DeviceChoice device_of_auto();

// Of an option --device, whose words the command line has checked.
DeviceChoice device_named(std::string_view word);

// One executor, for verbs without a config. `device` is auto, cpu or cuda.
std::unique_ptr<Executor> executor_for(const std::string& device, int threads);

// The target that planning needs of such an executor, which is not started: a plan for device=cuda needs no GPU.
// `ranks` share this machine.
Target target_for(const RunConfig& run, int ranks);

}  // namespace sextant
