// The CPU executor: one thread team, kernels of exec/cpu, an arena of host memory.
#pragma once

#include <memory>

#include "exec/executor.h"

namespace sextant {

// Physical memory, or the limit of the container where it is lower.
Bytes memory_of_this_machine();

std::unique_ptr<Executor> make_cpu_executor(int threads, const RankContext& context = {});  // 0 threads = one per core

}  // namespace sextant
