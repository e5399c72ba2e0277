#include <algorithm>
#include <cmath>
#include <limits>

#include "exec/alibi.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/gemm.h"
#include "exec/cpu/kernels/vector_math.h"
#include "ops/attention_scale.h"
#include "ops/attention_window.h"
#include "targets/cpu/attention_sizes.h"
#include "targets/local_heads.h"

namespace sextant::cpu {

namespace {

// The larger, or a NaN.
template <class T>
void raise_to(T& most, T score) {
  if (!(score <= most) && !std::isnan(most)) most = score;
}

// One query head of one sequence: scores by blocks, as attention has them.
template <class T>
struct HeadLogits {
  const T *q, *k;
  int64_t length, width, dim;
  const int32_t* begins;
  KeyRange range;
  T factor, slope;

  int64_t first_key(int64_t i) const {
    int64_t first = range.first(i);
    return begins ? std::max(first, std::min<int64_t>(begins[i], i)) : first;
  }

  T largest_of_all(std::byte* scratch) const {
    T most = -std::numeric_limits<T>::infinity();
    T* scores = reinterpret_cast<T*>(scratch);
    for (int64_t top = 0; top < length; top += kQueriesPerBlock) {
      int64_t queries = std::min(kQueriesPerBlock, length - top);
      for (int64_t left = 0; left < top + queries; left += kKeysPerBlock) {
        int64_t keys = std::min(kKeysPerBlock, top + queries - left);
        multiply(Gemm<T>{.m = queries,
                         .n = keys,
                         .k = dim,
                         .a = {q + top * width, width},
                         .b = {k + left * width, 1, width},
                         .c = scores,
                         .c_stride = kKeysPerBlock,
                         .triangle = Triangle::c_lower,
                         .diagonal = top - left},
                 scratch + kScoreBytes);
        for (int64_t i = top; i < top + queries; ++i)
          raise_to_row(most, scores + (i - top) * kKeysPerBlock, i, left, keys);
      }
    }
    return most;
  }

  // Of query i, whose row begins with key `left`.
  void raise_to_row(T& most, const T* row, int64_t i, int64_t left, int64_t keys) const {
    int64_t from = std::max<int64_t>(first_key(i) - left, 0), to = std::min(keys, i + 1 - left);
    if (from >= to) return;
    if (slope == 0) return raise_to(most, factor * largest(row + from, to - from));
    for (int64_t j = from; j < to; ++j) raise_to(most, factor * row[j] - slope * static_cast<T>(i - left - j));
  }
};

// One task for each sequence and head.
void run_attention_logits(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const Tensor& qkv = call.in[0];
    int64_t length = qkv.shape[1], width = qkv.shape[2];
    LocalHeads heads = local_heads(call.attrs, width);
    double scale = attention_scale_of(call.attrs);
    T factor = static_cast<T>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(heads.dim)));
    bool alibi = call.attrs.integer_or("alibi", 0) != 0;
    auto* of_tasks = reinterpret_cast<double*>(call.workspace);
    int64_t tasks = qkv.shape[0] * heads.q;
    std::byte* scratch = call.workspace + logit_bytes(tasks);
    call.team.parallel_for(tasks, [&](int64_t task, int thread) {
      int64_t b = task / heads.q, head = task % heads.q;
      const T* sequence = qkv.as<T>() + b * length * width;
      int64_t model_head = qkv.global_index(2, heads.q_at(head)) / heads.dim;
      HeadLogits<T> logits{
          .q = sequence + heads.q_at(head),
          .k = sequence + heads.k_at(heads.kv_of(head)),
          .length = length,
          .width = width,
          .dim = heads.dim,
          .begins = call.in.size() > 1 ? call.in[1].as<int32_t>() + b * length : nullptr,
          .range = key_range_of(call.attrs),
          .factor = factor,
          .slope = alibi ? static_cast<T>(alibi_slope(model_head, call.attrs.integer("heads"))) : T(0)};
      of_tasks[task] = static_cast<double>(logits.largest_of_all(scratch + thread * attend_scratch(heads.widest())));
    });
    double most = -std::numeric_limits<double>::infinity();
    for (int64_t task = 0; task < tasks; ++task) raise_to(most, of_tasks[task]);
    *call.out[0].as<T>() = static_cast<T>(most);
  });
}

}  // namespace

const CpuKernel attention_logits{.run = run_attention_logits};

}  // namespace sextant::cpu
