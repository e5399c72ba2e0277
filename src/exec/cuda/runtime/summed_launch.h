// Kernels that sum the states they read and write while they have them in registers, so that checksums
// (exec/state_checksums.h) cost no more reading.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "exec/cuda/runtime/kernel.h"
#include "exec/cuda/runtime/state_sums.h"

namespace sextant {

// Where the sums of an op's outputs are, among those of the arena; -1: that output has none.
constexpr size_t kSummedOutputs = 4;
using SummedOutputs = std::array<int32_t, kSummedOutputs>;

struct SummedStates {
  std::span<const SummedOutputs> places;  // of each call
  DeviceStateSum* sums;
  ChangedStateReport* report;
};

// CudaKernel::launch_all_summed: verifies what it has read and records what it has written. A step that is skipped
// reads and writes nothing.
using SummedLaunch = void (*)(CudaCalls calls, const SummedStates& states);

}  // namespace sextant
