#include "base/units.h"
#include "exec/cuda/kernels/expert_scores.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "targets/cuda/expert_sizes.h"

namespace sextant::cuda {

namespace {

constexpr int kZThreads = 256, kZWarps = kZThreads / 32;

double z_factor(const Attrs& attrs) {
  return attrs.real("coefficient") / static_cast<double>(attrs.integer("tokens"));
}

// Of one warp's token, in every lane.
__device__ float router_lse(const float* logits, int n) {
  SoftmaxOf softmax = softmax_of(logits, n);
  return softmax.top - logf(softmax.inverse);
}

// The sum over a block's tokens, in an order that does not depend on timing.
__global__ void __launch_bounds__(kZThreads) square_lse(const float* logits, float* sums, int64_t tokens, int n) {
  const int64_t first = blockIdx.x * kLoadTokens;
  const int in_block = static_cast<int>(min(static_cast<int64_t>(kLoadTokens), tokens - first));
  double sum = 0;
  for (int t = static_cast<int>(threadIdx.x) / 32; t < in_block; t += kZWarps) {
    float lse = router_lse(logits + (first + t) * n, n);
    if (threadIdx.x % 32 == 0) sum += static_cast<double>(lse) * lse;
  }
  sum = block_sum<kZThreads>(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = static_cast<float>(sum);
}

__global__ void __launch_bounds__(kZThreads)
    add_lse_squares(const float* sums, int64_t blocks, double factor, float* loss) {
  double sum = 0;
  for (int64_t b = threadIdx.x; b < blocks; b += kZThreads) sum += static_cast<double>(sums[b]);
  sum = block_sum<kZThreads>(sum);
  if (threadIdx.x == 0) *loss = static_cast<float>(factor * sum);
}

__global__ void __launch_bounds__(kZThreads)
    z_gradients(const float* dloss, const float* logits, float* dlogits, int64_t tokens, int n, double factor) {
  const int64_t token = static_cast<int64_t>(blockIdx.x) * kZWarps + threadIdx.x / 32;
  if (token >= tokens) return;
  const float* x = logits + token * n;
  const float lse = router_lse(x, n), scale = static_cast<float>(2 * static_cast<double>(*dloss) * factor) * lse;
  for (int e = static_cast<int>(threadIdx.x) % 32; e < n; e += 32) dlogits[token * n + e] = scale * expf(x[e] - lse);
}

void run_router_z_loss(const CudaCall& call) {
  const Tensor& logits = call.in[0];
  const int64_t tokens = logits.shape.rows(), blocks = ceil_div(tokens, kLoadTokens);
  auto* sums = reinterpret_cast<float*>(call.workspace);
  if (blocks > 0)
    square_lse<<<static_cast<unsigned>(blocks), kZThreads, 0, call.stream>>>(logits.as<float>(), sums, tokens,
                                                                             static_cast<int>(logits.shape.last()));
  add_lse_squares<<<1, kZThreads, 0, call.stream>>>(sums, blocks, z_factor(call.attrs), call.out[0].as<float>());
}

void run_router_z_loss_backward(const CudaCall& call) {
  const Tensor& logits = call.in[1];
  const int64_t tokens = logits.shape.rows();
  if (tokens == 0) return;
  z_gradients<<<static_cast<unsigned>(ceil_div(tokens, kZWarps)), kZThreads, 0, call.stream>>>(
      call.in[0].as<float>(), logits.as<float>(), call.out[0].as<float>(), tokens,
      static_cast<int>(logits.shape.last()), z_factor(call.attrs));
}

}  // namespace

const CudaKernel router_z_loss{.launch = run_router_z_loss};
const CudaKernel router_z_loss_backward{.launch = run_router_z_loss_backward};

}  // namespace sextant::cuda
