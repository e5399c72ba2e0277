// The CPU as a target: what its kernels need, known without running any.
#pragma once

#include "ir/plan.h"
#include "targets/kernel_needs.h"

namespace sextant {

// Of a rank that has this many threads; 0: one per core of this machine.
Target cpu_target(int threads);

const KernelTable& cpu_kernel_needs();

KernelScratch cpu_scratch(const Op& op, const LocalTypes& in, const LocalTypes& out, int threads);

}  // namespace sextant
