#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

__global__ void keep_scale_within(const float* scale, const float* norm, const float* limit, float* kept) {
  *kept = *norm <= *limit ? *scale : 0.0f;
}

void run_limit_norm(const CudaCall& call) {
  keep_scale_within<<<1, 1, 0, call.stream>>>(call.in[0].as<float>(), call.in[1].as<float>(), call.in[2].as<float>(),
                                              call.out[0].as<float>());
}

}  // namespace

const CudaKernel limit_norm{.launch = run_limit_norm};

}  // namespace sextant::cuda
