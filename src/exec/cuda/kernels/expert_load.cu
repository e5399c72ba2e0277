#include "base/units.h"
#include "exec/cuda/kernels/expert_scores.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "targets/cuda/expert_sizes.h"

namespace sextant::cuda {

namespace {

constexpr int kLoadThreads = 256, kLoadWarps = kLoadThreads / 32;

// What turns a logit into the token's share: softmax, or sigmoid divided by the sum of all.
struct ShareOf {
  bool sigmoid;
  SoftmaxOf softmax;
  __device__ float operator()(float logit) const {
    return sigmoid ? sigmoid_of(logit) * softmax.inverse : softmax(logit);
  }
};

__device__ ShareOf share_of(const float* logits, int n, bool sigmoid) {
  if (!sigmoid) return {false, softmax_of(logits, n)};
  float sum = 0;
  for (int e = static_cast<int>(threadIdx.x) % 32; e < n; e += 32) sum += sigmoid_of(logits[e]);
  return {true, {0, 1.0f / warp_sum(sum)}};
}

struct Load {
  const float* logits;
  const int32_t* experts;
  float *scores, *counts;  // of each block
  int64_t tokens;
  int n, top_k;
  bool sigmoid;
};

// The sums over a block's tokens, one token after the other.
__global__ void __launch_bounds__(kLoadThreads) sum_loads(Load x) {
  __shared__ ShareOf shares[kLoadTokens];
  extern __shared__ int32_t counts[];
  const int64_t first = blockIdx.x * kLoadTokens;
  const int tokens = static_cast<int>(min(static_cast<int64_t>(kLoadTokens), x.tokens - first));
  for (int e = threadIdx.x; e < x.n; e += kLoadThreads) counts[e] = 0;
  for (int t = static_cast<int>(threadIdx.x) / 32; t < tokens; t += kLoadWarps) {
    ShareOf share = share_of(x.logits + (first + t) * x.n, x.n, x.sigmoid);
    if (threadIdx.x % 32 == 0) shares[t] = share;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < tokens * x.top_k; i += kLoadThreads)
    atomicAdd(&counts[x.experts[first * x.top_k + i]], 1);
  __syncthreads();
  for (int e = threadIdx.x; e < x.n; e += kLoadThreads) {
    float sum = 0;
    for (int t = 0; t < tokens; ++t) sum += shares[t](x.logits[(first + t) * x.n + e]);
    x.scores[static_cast<int64_t>(blockIdx.x) * x.n + e] = sum;
    x.counts[static_cast<int64_t>(blockIdx.x) * x.n + e] = static_cast<float>(counts[e]);
  }
}

__global__ void __launch_bounds__(kLoadThreads) add_loads(Load x, int64_t blocks, float* scores, float* counts) {
  int e = static_cast<int>(blockIdx.x) * kLoadThreads + static_cast<int>(threadIdx.x);
  if (e >= x.n) return;
  float score = 0, count = 0;
  for (int64_t b = 0; b < blocks; ++b) score += x.scores[b * x.n + e], count += x.counts[b * x.n + e];
  scores[e] = score, counts[e] = count;
}

__global__ void __launch_bounds__(kLoadThreads)
    load_gradients(const float* dscores, const float* logits, float* dlogits, int64_t tokens, int n, bool sigmoid) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t token = static_cast<int64_t>(blockIdx.x) * kLoadWarps + threadIdx.x / 32;
  if (token >= tokens) return;
  const float* x = logits + token * n;
  ShareOf share = share_of(x, n, sigmoid);
  float mean = 0;
  for (int e = lane; e < n; e += 32) mean += share(x[e]) * dscores[e];
  mean = warp_sum(mean);
  for (int e = lane; e < n; e += 32)
    dlogits[token * n + e] = share(x[e]) * (dscores[e] - mean) * (sigmoid ? 1 - sigmoid_of(x[e]) : 1.0f);
}

void run_expert_load(const CudaCall& call) {
  const Tensor &logits = call.in[0], &experts = call.in[1];
  const int64_t tokens = logits.shape.rows(), blocks = ceil_div(tokens, kLoadTokens);
  auto* sums = reinterpret_cast<float*>(call.workspace);
  Load load{.logits = logits.as<float>(),
            .experts = experts.as<int32_t>(),
            .scores = sums,
            .counts = sums + blocks * logits.shape.last(),
            .tokens = tokens,
            .n = static_cast<int>(logits.shape.last()),
            .top_k = static_cast<int>(experts.shape.last()),
            .sigmoid = call.attrs.integer_or("sigmoid", 0) != 0};
  if (blocks > 0)
    sum_loads<<<static_cast<unsigned>(blocks), kLoadThreads, static_cast<size_t>(load.n) * 4, call.stream>>>(load);
  add_loads<<<static_cast<unsigned>(ceil_div(load.n, kLoadThreads)), kLoadThreads, 0, call.stream>>>(
      load, blocks, call.out[0].as<float>(), call.out[1].as<float>());
}

void run_expert_load_backward(const CudaCall& call) {
  const Tensor& logits = call.in[1];
  const int64_t tokens = logits.shape.rows();
  if (tokens == 0) return;
  load_gradients<<<static_cast<unsigned>(ceil_div(tokens, kLoadWarps)), kLoadThreads, 0, call.stream>>>(
      call.in[0].as<float>(), logits.as<float>(), call.out[0].as<float>(), tokens,
      static_cast<int>(logits.shape.last()), call.attrs.integer_or("sigmoid", 0) != 0);
}

struct Balance {
  const float *scores, *counts, *dloss;
  float *loss, *dscores;
  int n;
  double coefficient, tokens;

  explicit Balance(const Attrs& attrs)
      : scores(nullptr),
        counts(nullptr),
        dloss(nullptr),
        loss(nullptr),
        dscores(nullptr),
        n(0),
        coefficient(attrs.real("coefficient")),
        tokens(static_cast<double>(attrs.integer("tokens"))) {}
};

__global__ void __launch_bounds__(kLoadThreads) balance_value(Balance x) {
  double sum = 0;
  for (int e = threadIdx.x; e < x.n; e += kLoadThreads)
    sum += static_cast<double>(x.counts[e]) / x.tokens * (static_cast<double>(x.scores[e]) / x.tokens);
  sum = block_sum<kLoadThreads>(sum);
  if (threadIdx.x == 0) *x.loss = static_cast<float>(x.coefficient * x.n * sum);
}

__global__ void __launch_bounds__(kLoadThreads) balance_gradient(Balance x) {
  double factor = static_cast<double>(*x.dloss) * x.coefficient * x.n / x.tokens / x.tokens;
  for (int e = threadIdx.x; e < x.n; e += kLoadThreads)
    x.dscores[e] = static_cast<float>(factor * static_cast<double>(x.counts[e]));
}

void run_balance_loss(const CudaCall& call) {
  Balance balance(call.attrs);
  balance.scores = call.in[0].as<float>(), balance.counts = call.in[1].as<float>();
  balance.loss = call.out[0].as<float>(), balance.n = static_cast<int>(call.in[0].count());
  balance_value<<<1, kLoadThreads, 0, call.stream>>>(balance);
}

void run_balance_loss_backward(const CudaCall& call) {
  Balance balance(call.attrs);
  balance.dloss = call.in[0].as<float>(), balance.counts = call.in[1].as<float>();
  balance.dscores = call.out[0].as<float>(), balance.n = static_cast<int>(call.in[1].count());
  balance_gradient<<<1, kLoadThreads, 0, call.stream>>>(balance);
}

}  // namespace

const CudaKernel expert_load{.launch = run_expert_load};
const CudaKernel expert_load_backward{.launch = run_expert_load_backward};
const CudaKernel balance_loss{.launch = run_balance_loss};
const CudaKernel balance_loss_backward{.launch = run_balance_loss_backward};

}  // namespace sextant::cuda
