// Not yet on GPUs: configs that ask for fp8 there are refused before anything is bound (run/programs.cpp).
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

const CudaKernel absmax{};
const CudaKernel quantize_activation{};
const CudaKernel quantize_weight{};
const CudaKernel quantize_tiles{};
const CudaKernel quantize_blocks{};

}  // namespace sextant::cuda
