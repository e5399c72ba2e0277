// bench memory: streams through the device's memory, by size of the arrays; and the least that any kernel takes.
#pragma once

#include "bench/result.h"
#include "exec/probe.h"

namespace sextant {

struct MemoryRequest {
  DeviceProbe& probe;
  std::vector<int64_t> sizes;   // bytes of each array
  double peak_bytes_per_s = 0;  // 0: not known
  Repeat repeat = {};
};

void bench_memory(const MemoryRequest& request, BenchReport& report, const Watch& watch);

// Seconds of a kernel that does next to nothing, from the end of the kernel before it to its own end. Two kernels that
// depend on each other lose this time between them.
void bench_launch(const MemoryRequest& request, BenchReport& report, const Watch& watch);

}  // namespace sextant
