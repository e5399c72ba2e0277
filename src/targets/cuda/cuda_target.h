// An NVIDIA GPU under our own kernels as a target: what they need, known without a GPU and in every build.
#pragma once

#include "ir/plan.h"
#include "targets/kernel_needs.h"

namespace sextant {

Target cuda_target(Determinism determinism = Determinism::fast);

const KernelTable& cuda_kernel_needs();

KernelScratch cuda_scratch(const Op& op, const LocalTypes& in, const LocalTypes& out, Determinism determinism);

}  // namespace sextant
