// Checksums of states in a GPU's memory (exec/state_checksums.h): kernels that sum them, compare and record, on a
// stream. A state that has changed is reported to the host's memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <span>

namespace sextant {

// Of one state, in device memory.
struct DeviceStateSum {
  unsigned long long recorded = 0;
  unsigned long long running = 0, written = 0;  // of what is read and written now; zero between launches
};

struct DeviceState {
  const void* data;  // aligned to 16 bytes
  int64_t bytes;
  int32_t place;  // among the sums
};

// The first state that was found changed; page-locked memory, to be read when the stream has been waited for.
struct ChangedStateReport {
  int32_t place = -1;  // -1: none
  unsigned long long recorded = 0, found = 0;
};

void launch_record(std::span<const DeviceState> states, DeviceStateSum* sums, cudaStream_t stream);
void launch_verify(std::span<const DeviceState> states, DeviceStateSum* sums, ChangedStateReport* report,
                   cudaStream_t stream);

}  // namespace sextant
