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

// What a kernel that does next to nothing takes, from the end of the one before it to its own: so much is lost between
// two that depend on each other.
void bench_launch(const MemoryRequest& request, BenchReport& report, const Watch& watch);

}  // namespace sextant
