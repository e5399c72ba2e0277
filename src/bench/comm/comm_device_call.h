// A collective as a Program of one change of layout, run by an executor: NCCL's on GPUs. Its time is that of its op.
#pragma once

#include "bench/comm/comm_call.h"
#include "exec/executor.h"
#include "mesh/mesh.h"

namespace sextant {

// The group is the ranks along these axes of the mesh.
struct DeviceGroup {
  Executor& executor;
  const Mesh& mesh;
  std::vector<int> axes;
  int rank = 0;
};

// Broadcasts and messages are no changes of layout; exchanges go along one axis.
bool can_be_on_device(Collective op, size_t axes);

std::unique_ptr<CommCall> make_device_call(Collective op, int64_t bytes, const DeviceGroup& group);

}  // namespace sextant
