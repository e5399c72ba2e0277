// Checks of matrix products on a CPU (exec/gemm_fault.h has how they decide). Our kernels sum over k in blocks: the t
// of `roundings` is the depth of a block plus their number.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/rng.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/gemm.h"
#include "exec/gemm_fault.h"

namespace sextant::cpu {

// Of one run of one op.
struct GemmCheck {
  Random signs;
  std::byte* scratch = nullptr;  // as planned for the op; per thread where products are made inside tasks
  bool verifies = false;
  std::atomic<int> flips{0};  // results of which a bit is still to be flipped, for drills
  int flipped_bit = 4;        // counted from the lowest of the exponent; below 0: of the mantissa
  std::atomic<bool> found{false};
  GemmFault fault = {};  // the first
};

// multiply (gemm.h), followed by what call.check asks for. By the team:
void multiply_checked(const Gemm<float>& gemm, const KernelCall& call, std::byte* workspace);
void multiply_checked(const Gemm<double>& gemm, const KernelCall& call, std::byte* workspace);
// Inside a task, which has `check_scratch` of GemmCheckSizes to itself.
void multiply_checked(const Gemm<float>& gemm, const KernelCall& call, std::byte* scratch, std::byte* check_scratch);
void multiply_checked(const Gemm<double>& gemm, const KernelCall& call, std::byte* scratch, std::byte* check_scratch);

}  // namespace sextant::cpu
