#include <algorithm>
#include <cmath>
#include <limits>

#include "exec/alibi.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/vector_math.h"
#include "ops/attention_scale.h"
#include "ops/attention_window.h"
#include "targets/local_heads.h"

namespace sextant::cpu {

namespace {

// One task for each sequence and head.
void run_attention_logits(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const Tensor& qkv = call.in[0];
    int64_t length = qkv.shape[1], width = qkv.shape[2];
    LocalHeads heads = local_heads(call.attrs, width);
    KeyRange range = key_range_of(call.attrs);
    double scale = attention_scale_of(call.attrs);
    T factor = static_cast<T>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(heads.dim)));
    bool alibi = call.attrs.integer_or("alibi", 0) != 0;
    auto* of_tasks = reinterpret_cast<double*>(call.workspace);
    int64_t tasks = qkv.shape[0] * heads.q;
    call.team.parallel_for(tasks, [&](int64_t task, int) {
      int64_t b = task / heads.q, head = task % heads.q;
      const T* sequence = qkv.as<T>() + b * length * width;
      const T *q = sequence + heads.q_at(head), *k = sequence + heads.k_at(heads.kv_of(head));
      const int32_t* begins = call.in.size() > 1 ? call.in[1].as<int32_t>() + b * length : nullptr;
      int64_t model_head = qkv.global_index(2, heads.q_at(head)) / heads.dim;
      T slope = alibi ? static_cast<T>(alibi_slope(model_head, call.attrs.integer("heads"))) : T(0);
      T most = -std::numeric_limits<T>::infinity();
      for (int64_t i = 0; i < length; ++i) {
        int64_t first = range.first(i);
        if (begins) first = std::max(first, std::min<int64_t>(begins[i], i));
        for (int64_t j = first; j <= i; ++j) {
          T score = factor * dot(q + i * width, k + j * width, heads.dim) - slope * static_cast<T>(i - j);
          if (!(score <= most) && !std::isnan(most)) most = score;
        }
      }
      of_tasks[task] = static_cast<double>(most);
    });
    double most = -std::numeric_limits<double>::infinity();
    for (int64_t task = 0; task < tasks; ++task)
      if (!(of_tasks[task] <= most) && !std::isnan(most)) most = of_tasks[task];
    *call.out[0].as<T>() = static_cast<T>(most);
  });
}

}  // namespace

const CpuKernel attention_logits{.run = run_attention_logits};

}  // namespace sextant::cpu
