// Not yet on GPUs: configs that ask for fp8 there are refused before anything is bound (run/programs.cpp).
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

const CudaKernel fp8_linear{};
const CudaKernel fp8_linear_input_gradient{};
const CudaKernel fp8_linear_weight_gradient{};
const CudaKernel fp8_block_linear{};
const CudaKernel fp8_block_linear_input_gradient{};
const CudaKernel fp8_block_linear_weight_gradient{};

}  // namespace sextant::cuda
