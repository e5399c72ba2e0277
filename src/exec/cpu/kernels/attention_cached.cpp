#include <algorithm>

#include "exec/alibi.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/attend.h"
#include "exec/cpu/kernels/blocks.h"
#include "ops/attention_scale.h"
#include "ops/attention_window.h"
#include "targets/local_heads.h"

namespace sextant::cpu {

namespace {

constexpr size_t kSinks = 4;  // the input that may be left out

template <class T>
void extend_caches(const KernelCall& call, const LocalHeads& heads) {
  const LocalShape& shape = call.in[0].shape;
  int64_t length = shape[1], capacity = call.in[1].shape[2], start = *call.in[3].as<int32_t>();
  T *keys = call.out[1].as<T>(), *values = call.out[2].as<T>();
  for_blocks(call.team, shape.rows(), rows_per_task(heads.qkv_width()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = call.in[0].as<T>() + row * heads.qkv_width();
      for (int64_t kv = 0; kv < heads.kv; ++kv) {
        int64_t at = (row / length * heads.kv + kv) * capacity + start + row % length;
        std::copy_n(from + heads.k_at(kv), heads.dim, keys + at * heads.dim);
        std::copy_n(from + heads.v_at(kv), heads.value_dim, values + at * heads.value_dim);
      }
    }
  });
}

void run_attention_cached(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const LocalShape& shape = call.in[0].shape;
    int64_t length = shape[1], width = shape[2], capacity = call.in[1].shape[2], start = *call.in[3].as<int32_t>();
    LocalHeads heads = local_heads(call.attrs, width);
    extend_caches<T>(call, heads);
    int64_t blocks = ceil_div(length, kQueriesPerBlock), scratch = attend_scratch(heads.widest());
    call.team.parallel_for(shape[0] * heads.q * blocks, [&](int64_t task, int thread) {
      int64_t b = task / blocks / heads.q, head = task / blocks % heads.q, first = task % blocks * kQueriesPerBlock;
      int64_t cache_at = (b * heads.kv + heads.kv_of(head)) * capacity;
      attend(Attend<T>{.queries = std::min(kQueriesPerBlock, length - first),
                       .first = start + first,
                       .dim = heads.dim,
                       .value_dim = heads.value_dim,
                       .q = {call.in[0].as<T>() + (b * length + first) * width + heads.q_at(head), width},
                       .k = {call.out[1].as<T>() + cache_at * heads.dim, heads.dim},
                       .v = {call.out[2].as<T>() + cache_at * heads.value_dim, heads.value_dim},
                       .y = call.out[0].as<T>() + (b * length + first) * heads.y_width() + heads.y_at(head),
                       .y_stride = heads.y_width(),
                       .lse = nullptr,
                       .slope = static_cast<T>(alibi_slope_of(call.attrs, call.out[0], head)),
                       .places = {.distance = start + first},
                       .scale = static_cast<T>(attention_scale_of(call.attrs)),
                       .range = key_range_of(call.attrs),
                       .sink = call.in.size() > kSinks ? call.in[kSinks].as<T>() + head : nullptr},
             call.workspace + thread * scratch);
    });
  });
}

}  // namespace

const CpuKernel attention_cached{.run = run_attention_cached};

}  // namespace sextant::cpu
