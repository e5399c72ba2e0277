#include "exec/cuda/kernels/scalar_sum.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

struct Clip {
  double clip;
  float *norm, *scale;

  __device__ void operator()(double sum) const {
    double root = sqrt(sum);
    *norm = static_cast<float>(root);
    *scale = isfinite(root) ? static_cast<float>(clip > 0 ? fmin(1.0, clip / root) : 1.0) : 0.0f;
  }
};

void launch(const CudaCall& call) {
  sum_scalars(call, Clip{call.attrs.real("clip"), call.out[0].as<float>(), call.out[1].as<float>()});
}

}  // namespace

const CudaKernel clip_scale{.launch = launch};

}  // namespace sextant::cuda
