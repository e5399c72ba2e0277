#include <algorithm>
#include <limits>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/expert_scores.h"

namespace sextant::cpu {

namespace {

// Added to the sum by which sigmoids are divided, as DeepSeek-V3 does.
constexpr double kLeastSum = 1e-20;

struct Routing {
  explicit Routing(const Attrs& attrs)
      : sigmoid(scores_are_sigmoids(attrs)),
        normalise(attrs.integer_or("normalise", 0) != 0),
        chosen_only(attrs.integer_or("chosen_only", 0) != 0),
        forced(attrs.integer_or("forced", 0) != 0),
        scale(attrs.real_or("scale", 1)),
        groups(attrs.integer_or("groups", 1)),
        keep_groups(attrs.integer_or("keep_groups", groups)),
        group_top(attrs.integer_or("group_top", 1)) {}

  bool sigmoid, normalise, chosen_only, forced;
  double scale;
  int64_t groups, keep_groups, group_top;
};

template <class T>
constexpr T kOut = -std::numeric_limits<T>::infinity();

// The largest of n numbers, the first among equals; some index even where all are NaN.
template <class T>
int64_t first_largest(const T* x, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i)
    if (x[i] > x[best] || std::isnan(x[best])) best = i;
  return best;
}

// The sum of the `top` best of a group.
template <class T>
T group_score(const T* group, int64_t n, int64_t top) {
  T sum = 0, below = std::numeric_limits<T>::infinity();
  int64_t last = -1;
  for (int64_t taken = 0; taken < top; ++taken) {
    int64_t best = -1;
    for (int64_t i = 0; i < n; ++i) {
      bool left = group[i] < below || (group[i] == below && i > last);
      if (left && (best < 0 || group[i] > group[best])) best = i;
    }
    if (best < 0) break;
    sum += below = group[last = best];
  }
  return sum;
}

// Takes all groups but the best ones out of `by`, what experts are chosen by.
template <class T>
void keep_best_groups(const Routing& routing, T* by, int64_t n) {
  int64_t size = n / routing.groups;
  int64_t out = routing.groups - routing.keep_groups;
  for (; out > 0; --out) {  // the worst that is still in, the last among equals
    int64_t worst = -1;
    T least = 0;
    for (int64_t g = 0; g < routing.groups; ++g) {
      if (*std::max_element(by + g * size, by + (g + 1) * size) == kOut<T>) continue;
      T score = group_score(by + g * size, size, routing.group_top);
      if (worst < 0 || score <= least) worst = g, least = score;
    }
    if (worst < 0) return;
    std::fill_n(by + worst * size, size, kOut<T>);
  }
}

// One token's choice of `top_k` of `n` experts.
template <class T>
struct TokenRoute {
  int64_t n, top_k;
  const T* logits;
  const T* correction;  // of the scores by which experts are chosen; may be null
  T* scores;            // of all experts
  T* by;                // what they are chosen by
  T* weights;
  int32_t* experts;
};

// Of the token in this row.
template <class T>
void route_token(const Routing& routing, int64_t row, const TokenRoute<T>& token) {
  const auto [n, top_k, logits, correction, scores, by, weights, experts] = token;
  if (routing.chosen_only)
    std::copy_n(logits, n, scores);
  else if (routing.sigmoid)
    sigmoid_row(logits, scores, n);
  else
    softmax_row(logits, scores, n);
  bool in_groups = routing.keep_groups < routing.groups;
  if (routing.sigmoid && !correction && !in_groups)
    std::copy_n(logits, n, by);  // in the same order, but large ones are not equal by rounding
  else
    for (int64_t e = 0; e < n; ++e) by[e] = scores[e] + (correction ? correction[e] : 0);
  if (in_groups) keep_best_groups(routing, by, n);
  for (int64_t j = 0; j < top_k; ++j) {
    int64_t best = routing.forced ? (row * top_k + j) % n : first_largest(by, n);
    experts[j] = static_cast<int32_t>(best);
    weights[j] = scores[best];
    by[best] = std::numeric_limits<T>::quiet_NaN();  // taken
  }
  if (routing.chosen_only) softmax_row(weights, weights, top_k);
  if (routing.normalise) {
    T sum = routing.sigmoid ? static_cast<T>(kLeastSum) : T{0};
    for (int64_t j = 0; j < top_k; ++j) sum += weights[j];
    for (int64_t j = 0; j < top_k; ++j) weights[j] /= sum;
  }
  for (int64_t j = 0; j < top_k; ++j) weights[j] *= static_cast<T>(routing.scale);
}

void run_route(const KernelCall& call) {
  Routing routing(call.attrs);
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const Tensor& logits = call.in[0];
    int64_t n = logits.shape.last(), tokens = logits.shape.rows(), top_k = call.out[0].shape.last();
    const T* correction = call.in.size() > 1 ? call.in[1].as<T>() : nullptr;
    int64_t block = rows_per_task(n);
    call.team.parallel_for(ceil_div(tokens, block), [&](int64_t task, int thread) {
      T* scores = reinterpret_cast<T*>(call.workspace) + thread * 2 * n;
      for (int64_t t = task * block; t < std::min(tokens, (task + 1) * block); ++t)
        route_token<T>(routing, t,
                       {.n = n,
                        .top_k = top_k,
                        .logits = logits.as<T>() + t * n,
                        .correction = correction,
                        .scores = scores,
                        .by = scores + n,
                        .weights = call.out[0].as<T>() + t * top_k,
                        .experts = call.out[1].as<int32_t>() + t * top_k});
    });
  });
}

// Softmax over the chosen logits alone.
template <class T>
void chosen_gradient(const T* dweights, const T* logits, const int32_t* experts, int64_t top_k, T scale, T* dlogits) {
  T top = logits[experts[0]], sum = 0, mean = 0;
  for (int64_t j = 1; j < top_k; ++j) top = std::max(top, logits[experts[j]]);
  for (int64_t j = 0; j < top_k; ++j) sum += std::exp(logits[experts[j]] - top);
  auto weight = [&](int64_t j) { return std::exp(logits[experts[j]] - top) / sum; };
  for (int64_t j = 0; j < top_k; ++j) mean += weight(j) * dweights[j];
  for (int64_t j = 0; j < top_k; ++j) dlogits[experts[j]] += scale * weight(j) * (dweights[j] - mean);
}

template <class T>
struct TokenRouteGradient {
  int64_t n, top_k;
  const T* dweights;
  const T* logits;
  const int32_t* experts;
  T* dlogits;  // holds the scores first
};

// The gradient of a token's logits.
template <class T>
void route_token_backward(const Routing& routing, const TokenRouteGradient<T>& token) {
  const auto [n, top_k, dweights, logits, experts, dlogits] = token;
  auto scale = static_cast<T>(routing.scale);
  if (routing.chosen_only) {
    std::fill_n(dlogits, n, T{0});
    return chosen_gradient(dweights, logits, experts, top_k, scale, dlogits);
  }
  T* scores = dlogits;
  routing.sigmoid ? sigmoid_row(logits, scores, n) : softmax_row(logits, scores, n);
  // Of the score of slot j: (dweights[j] − inner)·factor.
  T factor = scale, inner = 0;
  if (routing.normalise) {
    T sum = routing.sigmoid ? static_cast<T>(kLeastSum) : T{0}, dot = 0;
    for (int64_t j = 0; j < top_k; ++j) sum += scores[experts[j]], dot += scores[experts[j]] * dweights[j];
    factor = scale / sum, inner = dot / sum;
  }
  auto dscore_of = [&](int64_t e) {  // 0 where it was not chosen
    T sum = 0;
    for (int64_t j = 0; j < top_k; ++j)
      if (experts[j] == e) sum += (dweights[j] - inner) * factor;
    return sum;
  };
  if (routing.sigmoid) {
    for (int64_t e = 0; e < n; ++e) dlogits[e] = dscore_of(e) * scores[e] * (1 - scores[e]);
    return;
  }
  T mean = 0;  // Σ scores·dscores
  for (int64_t j = 0; j < top_k; ++j) mean += scores[experts[j]] * (dweights[j] - inner) * factor;
  for (int64_t e = 0; e < n; ++e) dlogits[e] = scores[e] * (dscore_of(e) - mean);
}

void run_route_backward(const KernelCall& call) {
  Routing routing(call.attrs);
  for_real_type(call.in[0].dtype, [&]<class T>() {
    int64_t n = call.in[1].shape.last(), top_k = call.in[0].shape.last();
    for_blocks(call.team, call.in[1].shape.rows(), rows_per_task(n), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        route_token_backward<T>(routing, {.n = n,
                                          .top_k = top_k,
                                          .dweights = call.in[0].as<T>() + t * top_k,
                                          .logits = call.in[1].as<T>() + t * n,
                                          .experts = call.in[2].as<int32_t>() + t * top_k,
                                          .dlogits = call.out[0].as<T>() + t * n});
    });
  });
}

}  // namespace

const CpuKernel route{.run = run_route};
const CpuKernel route_backward{.run = run_route_backward};

}  // namespace sextant::cpu
