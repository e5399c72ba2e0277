#include <algorithm>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/column_sums.h"
#include "exec/cpu/kernels/expert_scores.h"

namespace sextant::cpu {

namespace {

// Contribution of one token to the sums: scores that add up to 1.
template <class T>
void shares_row(bool sigmoid, const T* logits, T* shares, int64_t n) {
  if (!sigmoid) return softmax_row(logits, shares, n);
  sigmoid_row(logits, shares, n);
  T sum = 0;
  for (int64_t e = 0; e < n; ++e) sum += shares[e];
  for (int64_t e = 0; e < n; ++e) shares[e] /= sum;
}

void run_expert_load(const KernelCall& call) {
  const Tensor &logits = call.in[0], &experts = call.in[1];
  bool sigmoid = scores_are_sigmoids(call.attrs);
  for_real_type(logits.dtype, [&]<class T>() {
    int64_t n = logits.shape.last(), top_k = experts.shape.last();
    RowBlocks blocks = row_blocks(logits.shape.rows());
    T *scores = reinterpret_cast<T*>(call.workspace), *counts = scores + blocks.count() * n;
    for_blocks(call.team, blocks.rows, blocks.block, [&](int64_t begin, int64_t end) {
      // The block's sums of counts serve as a row of shares first: all of them are still to come.
      T *sum = scores + begin / blocks.block * n, *shares = counts + begin / blocks.block * n;
      std::fill_n(sum, n, T{0});
      for (int64_t t = begin; t < end; ++t) {
        shares_row(sigmoid, logits.as<T>() + t * n, shares, n);
        for (int64_t e = 0; e < n; ++e) sum[e] += shares[e];
      }
      T* count = shares;
      std::fill_n(count, n, T{0});
      const int32_t* chosen = experts.as<int32_t>();
      for (int64_t i = begin * top_k; i < end * top_k; ++i) count[chosen[i]] += 1;
    });
    add_partials(call.team, scores, blocks.count(), n, call.out[0].as<T>(), Write::over);
    add_partials(call.team, counts, blocks.count(), n, call.out[1].as<T>(), Write::over);
  });
}

// One sequence after the other, each by one thread.
void run_sequence_load(const KernelCall& call) {
  const Tensor &logits = call.in[0], &experts = call.in[1];
  bool sigmoid = scores_are_sigmoids(call.attrs);
  for_real_type(logits.dtype, [&]<class T>() {
    int64_t n = logits.shape.last(), length = logits.shape[1], slots = length * experts.shape.last();
    call.team.parallel_for(logits.shape[0], [&](int64_t b, int thread) {
      T *shares = reinterpret_cast<T*>(call.workspace) + thread * n, *scores = call.out[0].as<T>() + b * n,
        *counts = call.out[1].as<T>() + b * n;
      std::fill_n(scores, n, T{0});
      std::fill_n(counts, n, T{0});
      for (int64_t t = b * length; t < (b + 1) * length; ++t) {
        shares_row(sigmoid, logits.as<T>() + t * n, shares, n);
        for (int64_t e = 0; e < n; ++e) scores[e] += shares[e];
      }
      const int32_t* chosen = experts.as<int32_t>() + b * slots;
      for (int64_t i = 0; i < slots; ++i) counts[chosen[i]] += 1;
    });
  });
}

// With shares p = s / Σ s: dlogits_e = (dscores_e − Σ p·dscores)·p_e for softmax, and that times (1 − s_e) for
// sigmoids. Each sequence has dscores of its own, or all have the same.
void run_load_backward(const KernelCall& call) {
  const Tensor &dscores = call.in[0], &logits = call.in[1];
  bool sigmoid = scores_are_sigmoids(call.attrs);
  for_real_type(logits.dtype, [&]<class T>() {
    int64_t n = logits.shape.last();
    int64_t apart = dscores.shape.rank() == 2 ? logits.shape[1] : logits.shape.rows();  // tokens with the same dscores
    for_blocks(call.team, logits.shape.rows(), rows_per_task(n), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const T *logit = logits.as<T>() + t * n, *d = dscores.as<T>() + t / apart * n;
        T *dlogits = call.out[0].as<T>() + t * n, mean = 0;
        shares_row(sigmoid, logit, dlogits, n);
        for (int64_t e = 0; e < n; ++e) mean += dlogits[e] * d[e];
        for (int64_t e = 0; e < n; ++e) {
          dlogits[e] *= d[e] - mean;
          if (sigmoid) dlogits[e] *= 1 - 1 / (1 + std::exp(-logit[e]));
        }
      }
    });
  });
}

// Factor of counts·scores: coefficient · experts / (sequences · tokens²).
double balance_factor(const Attrs& attrs) {
  auto tokens = static_cast<double>(attrs.integer("tokens"));
  return attrs.real("coefficient") * static_cast<double>(attrs.integer("experts")) /
         static_cast<double>(attrs.integer_or("sequences", 1)) / tokens / tokens;
}

void run_balance_loss(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *scores = call.in[0].as<T>(), *counts = call.in[1].as<T>();
    double sum = 0;
    for (int64_t i = 0; i < call.in[0].count(); ++i)
      sum += static_cast<double>(counts[i]) * static_cast<double>(scores[i]);
    *call.out[0].as<T>() = static_cast<T>(balance_factor(call.attrs) * sum);
  });
}

void run_balance_loss_backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* counts = call.in[1].as<T>();
    double factor = static_cast<double>(*call.in[0].as<T>()) * balance_factor(call.attrs);
    for (int64_t i = 0; i < call.in[1].count(); ++i)
      call.out[0].as<T>()[i] = static_cast<T>(factor * static_cast<double>(counts[i]));
  });
}

}  // namespace

const CpuKernel expert_load{.run = run_expert_load};
const CpuKernel expert_load_backward{.run = run_load_backward};
const CpuKernel sequence_load{.run = run_sequence_load};
const CpuKernel sequence_load_backward{.run = run_load_backward};
const CpuKernel balance_loss{.run = run_balance_loss};
const CpuKernel balance_loss_backward{.run = run_balance_loss_backward};

}  // namespace sextant::cpu
