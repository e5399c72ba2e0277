// Checks of GEMMs on a GPU, behind the GEMM on its stream (exec/gemm_fault.h has how they decide). What is checked is
// the sum before any activation: of the epilogues with a GELU the `aux`. Sums are made by tensor cores: f32 ones keep
// one bit less than f32 (terms are cut off, not rounded), those of fp8 about 13 bits, and one rounding in 32 terms.
// A fault is written into page-locked memory of the host, for whoever waits for the stream.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "exec/cuda/gemm/gemm.h"

namespace sextant {

// As the device writes it.
struct DeviceGemmFault {
  int found;  // 0: none
  int32_t op;
  int64_t row, column;  // column -1: sums of the row with random signs
  double got, expected, allowed;
};

// Of one run of one op.
struct DeviceGemmCheck {
  int32_t op = 0;                // which op it is
  uint64_t signs = 0;            // what they are drawn from
  std::byte* scratch = nullptr;  // as planned for the op (targets/cuda/gemm_check_sizes.h)
  bool verifies = false;
  int flips = 0;                     // results of which a bit is still to be flipped, for drills
  DeviceGemmFault* fault = nullptr;  // of page-locked memory: the first that is found
};

// Before the GEMM is put on the stream, and behind it.
void begin_check(const GemmShape& shape, const GemmOperands& operands, const DeviceGemmCheck& check,
                 cudaStream_t stream);
void end_check(const GemmShape& shape, const GemmOperands& operands, DeviceGemmCheck& check, cudaStream_t stream);

}  // namespace sextant
