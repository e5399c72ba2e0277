// The CUDA executor: kernels of exec/cuda on one GPU, an arena of its memory, regions replayed as CUDA graphs.
#pragma once

#include <memory>

#include "exec/cuda/runtime/device.h"
#include "exec/executor.h"

namespace sextant {

struct CudaOptions {
  Determinism determinism = Determinism::fast;
  int device = -1;       // -1: by the rank, in turn
  int host_threads = 0;  // of ops that run on host cores; 0: the device's share of all cores
};

// RunError when there is no usable device or library, naming what is missing.
std::unique_ptr<Executor> make_cuda_executor(const CudaOptions& options, const RankContext& context = {});

}  // namespace sextant
