// An op that talks to other ranks, by way of the host: inputs are copied there, the CPU's own kernel does the work
// through the run's Transport, outputs are copied back. For ranks that share a GPU; slow, and the truth that NCCL is
// held to.
#pragma once

#include <memory>

#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

// The op of the preparation, staged. Its wires must be there.
std::unique_ptr<PreparedCudaKernel> staged(const CudaPreparation& p);

}  // namespace sextant::cuda
