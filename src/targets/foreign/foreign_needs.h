// What the kernels of other people's software are taken to need on a GPU, for plans of their runs.
#pragma once

#include "targets/kernel_needs.h"

namespace sextant {

const KernelTable& foreign_kernel_needs();

}  // namespace sextant
