// bench memory on an accelerator, of its host: page-locked copies to the device and back, and streams through the
// host's own memory, as what is kept there needs them (offload.*).
#pragma once

#include "bench/result.h"
#include "exec/probe.h"

namespace sextant {

struct HostRequest {
  DeviceProbe& device;  // one that has a link to its host
  DeviceProbe& host;
  int64_t bytes = 0;  // of each array
  Repeat repeat = {};
};

void bench_host(const HostRequest& request, BenchReport& report, const Watch& watch);

}  // namespace sextant
