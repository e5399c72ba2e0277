#include "base/units.h"
#include "exec/cuda/kernels/expert_scores.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "targets/cuda/expert_sizes.h"

namespace sextant::cuda {

namespace {

constexpr int kLoadThreads = 256, kLoadWarps = kLoadThreads / 32;

// Maps a logit to the token's share: softmax, or sigmoid divided by the sum of all.
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
  int64_t tokens;          // of each group: all, or a sequence's
  int n, top_k;
  bool sigmoid;
};

// The sums over a block's tokens, one token after the other. blockIdx.y is the group.
__global__ void __launch_bounds__(kLoadThreads) sum_loads(Load x) {
  __shared__ ShareOf shares[kLoadTokens];
  extern __shared__ int32_t counts[];
  const int64_t in_group = blockIdx.x * kLoadTokens, first = blockIdx.y * x.tokens + in_group;
  const int64_t row = static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x;
  const int tokens = static_cast<int>(min(static_cast<int64_t>(kLoadTokens), x.tokens - in_group));
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
    x.scores[row * x.n + e] = sum;
    x.counts[row * x.n + e] = static_cast<float>(counts[e]);
  }
}

__global__ void __launch_bounds__(kLoadThreads) add_loads(Load x, int64_t blocks, float* scores, float* counts) {
  int e = static_cast<int>(blockIdx.x) * kLoadThreads + static_cast<int>(threadIdx.x);
  if (e >= x.n) return;
  float score = 0, count = 0;
  const int64_t group = blockIdx.y;
  for (int64_t b = group * blocks; b < (group + 1) * blocks; ++b)
    score += x.scores[b * x.n + e], count += x.counts[b * x.n + e];
  scores[group * x.n + e] = score, counts[group * x.n + e] = count;
}

// `apart` tokens one behind the other have the same dscores.
__global__ void __launch_bounds__(kLoadThreads)
    load_gradients(const float* all_dscores, int64_t apart, const float* logits, float* dlogits, int64_t tokens, int n,
                   bool sigmoid) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t token = static_cast<int64_t>(blockIdx.x) * kLoadWarps + threadIdx.x / 32;
  if (token >= tokens) return;
  const float *x = logits + token * n, *dscores = all_dscores + token / apart * n;
  ShareOf share = share_of(x, n, sigmoid);
  float mean = 0;
  for (int e = lane; e < n; e += 32) mean += share(x[e]) * dscores[e];
  mean = warp_sum(mean);
  for (int e = lane; e < n; e += 32)
    dlogits[token * n + e] = share(x[e]) * (dscores[e] - mean) * (sigmoid ? 1 - sigmoid_of(x[e]) : 1.0f);
}

// Of all tokens, or of each sequence.
void sum_groups(const CudaCall& call, int64_t groups) {
  const Tensor &logits = call.in[0], &experts = call.in[1];
  if (groups == 0) return;
  const int64_t tokens = logits.shape.rows() / groups, blocks = ceil_div(tokens, kLoadTokens);
  auto* sums = reinterpret_cast<float*>(call.workspace);
  Load load{.logits = logits.as<float>(),
            .experts = experts.as<int32_t>(),
            .scores = sums,
            .counts = sums + groups * blocks * logits.shape.last(),
            .tokens = tokens,
            .n = static_cast<int>(logits.shape.last()),
            .top_k = static_cast<int>(experts.shape.last()),
            .sigmoid = call.attrs.integer_or("sigmoid", 0) != 0};
  const auto rows = static_cast<unsigned>(groups);
  if (blocks > 0)
    sum_loads<<<dim3(static_cast<unsigned>(blocks), rows), kLoadThreads, static_cast<size_t>(load.n) * 4,
                call.stream>>>(load);
  add_loads<<<dim3(static_cast<unsigned>(ceil_div(load.n, kLoadThreads)), rows), kLoadThreads, 0, call.stream>>>(
      load, blocks, call.out[0].as<float>(), call.out[1].as<float>());
}

void run_expert_load(const CudaCall& call) {
  sum_groups(call, 1);
}

void run_sequence_load(const CudaCall& call) {
  sum_groups(call, call.in[0].shape[0]);
}

void run_load_backward(const CudaCall& call) {
  const Tensor &dscores = call.in[0], &logits = call.in[1];
  const int64_t tokens = logits.shape.rows();
  if (tokens == 0) return;
  load_gradients<<<static_cast<unsigned>(ceil_div(tokens, kLoadWarps)), kLoadThreads, 0, call.stream>>>(
      dscores.as<float>(), dscores.shape.rank() == 2 ? logits.shape[1] : tokens, logits.as<float>(),
      call.out[0].as<float>(), tokens, static_cast<int>(logits.shape.last()), call.attrs.integer_or("sigmoid", 0) != 0);
}

struct Balance {
  const float *scores, *counts, *dloss;
  float *loss, *dscores;
  int64_t count;
  double factor;  // of counts·scores

  explicit Balance(const Attrs& attrs)
      : scores(nullptr), counts(nullptr), dloss(nullptr), loss(nullptr), dscores(nullptr), count(0) {
    auto tokens = static_cast<double>(attrs.integer("tokens"));
    factor = attrs.real("coefficient") * static_cast<double>(attrs.integer("experts")) /
             static_cast<double>(attrs.integer_or("sequences", 1)) / tokens / tokens;
  }
};

__global__ void __launch_bounds__(kLoadThreads) balance_value(Balance x) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < x.count; i += kLoadThreads)
    sum += static_cast<double>(x.counts[i]) * static_cast<double>(x.scores[i]);
  sum = block_sum<kLoadThreads>(sum);
  if (threadIdx.x == 0) *x.loss = static_cast<float>(x.factor * sum);
}

__global__ void __launch_bounds__(kLoadThreads) balance_gradient(Balance x) {
  double factor = static_cast<double>(*x.dloss) * x.factor;
  for (int64_t i = threadIdx.x; i < x.count; i += kLoadThreads)
    x.dscores[i] = static_cast<float>(factor * static_cast<double>(x.counts[i]));
}

void run_balance_loss(const CudaCall& call) {
  Balance balance(call.attrs);
  balance.scores = call.in[0].as<float>(), balance.counts = call.in[1].as<float>();
  balance.loss = call.out[0].as<float>(), balance.count = call.in[0].count();
  balance_value<<<1, kLoadThreads, 0, call.stream>>>(balance);
}

void run_balance_loss_backward(const CudaCall& call) {
  Balance balance(call.attrs);
  balance.dloss = call.in[0].as<float>(), balance.counts = call.in[1].as<float>();
  balance.dscores = call.out[0].as<float>(), balance.count = call.in[1].count();
  balance_gradient<<<1, kLoadThreads, 0, call.stream>>>(balance);
}

}  // namespace

const CudaKernel expert_load{.launch = run_expert_load};
const CudaKernel expert_load_backward{.launch = run_load_backward};
const CudaKernel sequence_load{.launch = run_sequence_load};
const CudaKernel sequence_load_backward{.launch = run_load_backward};
const CudaKernel balance_loss{.launch = run_balance_loss};
const CudaKernel balance_loss_backward{.launch = run_balance_loss_backward};

}  // namespace sextant::cuda
