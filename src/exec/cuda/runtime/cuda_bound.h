// A Program at its addresses in a GPU's memory: what a CUDA executor's bind makes. The first time a region runs it is
// captured as a CUDA graph, one for each set of addresses and sums it can have; from then on it is replayed.
#pragma once

#include <memory>

#include "base/threads.h"
#include "exec/cuda/runtime/cuda_arena.h"
#include "exec/cuda/runtime/device.h"
#include "exec/cuda/runtime/wires.h"
#include "exec/executor.h"

namespace sextant {

struct CudaRankParts {
  CudaDevice& device;
  int rank = 0;
  CudaWires* wires = nullptr;       // null when there are no other ranks
  ThreadTeam* host_team = nullptr;  // of ops that run on host cores; null when the Program has none
};

// Whether some op of the Program runs on host cores.
bool has_ops_of_host(const Program& program);

// All must outlive the result.
std::unique_ptr<Bound> bind_on_cuda(const Program& program, CudaArena& arena, const CudaRankParts& parts);

}  // namespace sextant
