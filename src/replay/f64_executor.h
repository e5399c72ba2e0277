// An executor that computes in f64 and is spoken to in f32: checkpoints, feeds and fetches are those of an f32 run. For
// replays: what differs between f32 and f64 is rounding.
#pragma once

#include <memory>

#include "exec/executor.h"

namespace sextant {

// UserError where the executor has no kernels for f64: only those of the CPU have.
std::unique_ptr<Executor> make_f64_executor(std::unique_ptr<Executor> executor);

}  // namespace sextant
