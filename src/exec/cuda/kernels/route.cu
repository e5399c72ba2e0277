#include "base/units.h"
#include "exec/cuda/kernels/expert_scores.cuh"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

constexpr int kRouteWarps = 4;
constexpr float kLeastSum = 1e-20f;  // as on the CPU

struct Routing {
  explicit Routing(const Attrs& attrs)
      : top_k(static_cast<int>(attrs.integer("top_k"))),
        groups(static_cast<int>(attrs.integer_or("groups", 1))),
        keep_groups(static_cast<int>(attrs.integer_or("keep_groups", groups))),
        group_top(static_cast<int>(attrs.integer_or("group_top", 1))),
        sigmoid(attrs.integer_or("sigmoid", 0) != 0),
        normalise(attrs.integer_or("normalise", 0) != 0),
        chosen_only(attrs.integer_or("chosen_only", 0) != 0),
        forced(attrs.integer_or("forced", 0) != 0),
        scale(static_cast<float>(attrs.real_or("scale", 1))) {}

  int top_k, groups, keep_groups, group_top;
  bool sigmoid, normalise, chosen_only, forced;
  float scale;
};

struct Route {
  const float *logits, *correction;
  float* weights;
  int32_t* experts;
  int64_t tokens;
  int n;
  Routing routing;
};

// The largest of n numbers in shared memory, the first among equals, in every lane; some index even where all are NaN.
__device__ int first_largest(const float* x, int n) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float best = -INFINITY;
  int at = n;  // none yet
  for (int e = lane; e < n; e += 32)
    if (!isnan(x[e]) && (at == n || x[e] > best)) best = x[e], at = e;
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    float other = __shfl_xor_sync(kWholeWarp, best, distance);
    int other_at = __shfl_xor_sync(kWholeWarp, at, distance);
    bool better = other > best || (other == best && other_at < at) || at == n;
    if (better && other_at < n) best = other, at = other_at;
  }
  return min(at, n - 1);
}

// By lane 0 alone: groups are few.
__device__ void keep_best_groups(const Routing& routing, float* by, int n) {
  const int size = n / routing.groups;
  auto score_of = [&](int group) {
    float sum = 0, below = INFINITY;
    int last = -1;
    for (int taken = 0; taken < routing.group_top; ++taken) {
      int best = -1;
      for (int i = 0; i < size; ++i) {
        float x = by[group * size + i];
        bool left = x < below || (x == below && i > last);
        if (left && (best < 0 || x > by[group * size + best])) best = i;
      }
      if (best < 0) break;
      sum += below = by[group * size + (last = best)];
    }
    return sum;
  };
  for (int out = routing.groups - routing.keep_groups; out > 0; --out) {
    int worst = -1;
    float least = 0;
    for (int g = 0; g < routing.groups; ++g) {
      bool in = false;
      for (int i = 0; i < size; ++i) in = in || by[g * size + i] != -INFINITY;
      if (!in) continue;
      float score = score_of(g);
      if (worst < 0 || score <= least) worst = g, least = score;
    }
    if (worst < 0) return;
    for (int i = 0; i < size; ++i) by[worst * size + i] = -INFINITY;
  }
}

// A warp for each token. Shared memory: scores, and what experts are chosen by.
__global__ void __launch_bounds__(kRouteWarps * 32) route_tokens(Route x) {
  extern __shared__ float memory[];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t token = static_cast<int64_t>(blockIdx.x) * kRouteWarps + warp;
  if (token >= x.tokens) return;
  const Routing& routing = x.routing;
  const float* logits = x.logits + token * x.n;
  float *scores = memory + warp * 2 * x.n, *by = scores + x.n;
  if (routing.chosen_only || routing.sigmoid) {
    for (int e = lane; e < x.n; e += 32) scores[e] = routing.chosen_only ? logits[e] : sigmoid_of(logits[e]);
  } else {
    SoftmaxOf softmax = softmax_of(logits, x.n);
    for (int e = lane; e < x.n; e += 32) scores[e] = softmax(logits[e]);
  }
  const bool in_groups = routing.keep_groups < routing.groups;
  // In the same order as their sigmoids, but large ones are not equal by rounding.
  const bool by_logits = routing.sigmoid && !x.correction && !in_groups;
  for (int e = lane; e < x.n; e += 32)
    by[e] = by_logits ? logits[e] : scores[e] + (x.correction ? x.correction[e] : 0.0f);
  __syncwarp();
  if (in_groups) {
    if (lane == 0) keep_best_groups(routing, by, x.n);
    __syncwarp();
  }
  float* weights = x.weights + token * routing.top_k;
  int32_t* experts = x.experts + token * routing.top_k;
  float sum = 0, top = 0;
  for (int j = 0; j < routing.top_k; ++j) {
    int best = routing.forced ? static_cast<int>((token * routing.top_k + j) % x.n) : first_largest(by, x.n);
    float score = scores[best];
    if (j == 0) top = score;
    sum += routing.chosen_only ? expf(score - top) : score;
    __syncwarp();
    if (lane == 0) {
      experts[j] = best;
      weights[j] = score;
      by[best] = __int_as_float(0x7fc00000);  // taken: no number is larger, or smaller
    }
    __syncwarp();
  }
  if (lane != 0) return;
  for (int j = 0; j < routing.top_k; ++j) {
    float weight = weights[j];
    if (routing.chosen_only) weight = expf(weight - top) / sum;
    if (routing.normalise) weight /= routing.sigmoid ? sum + kLeastSum : sum;
    weights[j] = weight * routing.scale;
  }
}

struct RouteGradient {
  const float *dweights, *logits;
  const int32_t* experts;
  float* dlogits;
  int64_t tokens;
  int n;
  Routing routing;
};

// As the CPU's kernel writes it.
__global__ void __launch_bounds__(kRouteWarps * 32) route_gradients(RouteGradient x) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t token = static_cast<int64_t>(blockIdx.x) * kRouteWarps + warp;
  if (token >= x.tokens) return;
  const Routing& routing = x.routing;
  const float *logits = x.logits + token * x.n, *dweights = x.dweights + token * routing.top_k;
  const int32_t* experts = x.experts + token * routing.top_k;
  SoftmaxOf softmax{};
  if (routing.chosen_only) {
    float top = -INFINITY, sum = 0;
    for (int j = 0; j < routing.top_k; ++j) top = fmaxf(top, logits[experts[j]]);
    for (int j = 0; j < routing.top_k; ++j) sum += expf(logits[experts[j]] - top);
    softmax = {top, 1.0f / sum};
  } else if (!routing.sigmoid) {
    softmax = softmax_of(logits, x.n);
  }
  auto score_of = [&](int e) { return routing.sigmoid ? sigmoid_of(logits[e]) : softmax(logits[e]); };
  float factor = routing.scale, inner = 0;
  if (routing.normalise && !routing.chosen_only) {
    float sum = routing.sigmoid ? kLeastSum : 0.0f, dot = 0;
    for (int j = 0; j < routing.top_k; ++j) {
      float score = score_of(experts[j]);
      sum += score, dot += score * dweights[j];
    }
    factor = routing.scale / sum, inner = dot / sum;
  }
  float mean = 0;  // Σ scores·dscores of the chosen
  for (int j = 0; j < routing.top_k; ++j) mean += score_of(experts[j]) * (dweights[j] - inner) * factor;
  for (int e = lane; e < x.n; e += 32) {
    float dscore = 0;
    bool chosen = false;
    for (int j = 0; j < routing.top_k; ++j)
      if (experts[j] == e) dscore += (dweights[j] - inner) * factor, chosen = true;
    float score = score_of(e), slope = routing.sigmoid ? dscore * score * (1 - score) : score * (dscore - mean);
    x.dlogits[token * x.n + e] = routing.chosen_only && !chosen ? 0.0f : slope;
  }
}

unsigned blocks_for(int64_t tokens) {
  return static_cast<unsigned>(ceil_div(tokens, kRouteWarps));
}

void run_route(const CudaCall& call) {
  const Tensor& logits = call.in[0];
  Route route{.logits = logits.as<float>(),
              .correction = call.in.size() > 1 ? call.in[1].as<float>() : nullptr,
              .weights = call.out[0].as<float>(),
              .experts = call.out[1].as<int32_t>(),
              .tokens = logits.shape.rows(),
              .n = static_cast<int>(logits.shape.last()),
              .routing = Routing(call.attrs)};
  if (route.tokens == 0) return;
  size_t bytes = static_cast<size_t>(kRouteWarps * 2 * route.n) * sizeof(float);
  // Where this fails, so does the launch, which is checked.
  (void)cudaFuncSetAttribute(route_tokens, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  route_tokens<<<blocks_for(route.tokens), kRouteWarps * 32, bytes, call.stream>>>(route);
}

void run_route_backward(const CudaCall& call) {
  const Tensor& logits = call.in[1];
  RouteGradient gradient{.dweights = call.in[0].as<float>(),
                         .logits = logits.as<float>(),
                         .experts = call.in[2].as<int32_t>(),
                         .dlogits = call.out[0].as<float>(),
                         .tokens = logits.shape.rows(),
                         .n = static_cast<int>(logits.shape.last()),
                         .routing = Routing(call.attrs)};
  if (gradient.tokens > 0) route_gradients<<<blocks_for(gradient.tokens), kRouteWarps * 32, 0, call.stream>>>(gradient);
}

}  // namespace

const CudaKernel route{.launch = run_route};
const CudaKernel route_backward{.launch = run_route_backward};

}  // namespace sextant::cuda
