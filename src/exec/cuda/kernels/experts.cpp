// The ops of experts have no CUDA kernels yet: binding a Program with one says so.
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

const CudaKernel balance_loss{};
const CudaKernel balance_loss_backward{};
const CudaKernel expert_down{};
const CudaKernel expert_down_input_gradient{};
const CudaKernel expert_down_weight_gradient{};
const CudaKernel expert_load{};
const CudaKernel expert_load_backward{};
const CudaKernel expert_up{};
const CudaKernel expert_up_input_gradient{};
const CudaKernel expert_up_weight_gradient{};
const CudaKernel linear_wide{};
const CudaKernel linear_wide_input_gradient{};
const CudaKernel linear_wide_weight_gradient{};
const CudaKernel route{};
const CudaKernel route_backward{};
const CudaKernel row_gate{};
const CudaKernel row_gate_backward{};
const CudaKernel weighted_swiglu{};
const CudaKernel weighted_swiglu_backward{};

}  // namespace sextant::cuda
