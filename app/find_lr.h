// `train --find-lr`: a learning-rate range test, with its points as CSV, its picture, and what it suggests.
#pragma once

#include "app/processes.h"
#include "app/train_arguments.h"
#include "config/run_config.h"

namespace sextant {

ExitCode find_lr(const TrainArguments& arguments, RunConfig run, Processes& processes);

}  // namespace sextant
