// Assumed needs of other software's GPU kernels, for plans of its runs.
#pragma once

#include "targets/kernel_needs.h"

namespace sextant {

const KernelTable& foreign_kernel_needs();

}  // namespace sextant
