#include <algorithm>
#include <cmath>

#include "exec/alibi.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/attend.h"
#include "exec/cpu/kernels/attend_backward.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/vector_math.h"
#include "ops/attention_scale.h"
#include "ops/attention_window.h"
#include "targets/local_heads.h"

namespace sextant::cpu {

namespace {

// Those of sequence b: input `at`, which may be left out, and then be something else.
const int32_t* begins_of(const KernelCall& call, size_t at, int64_t b) {
  bool given = call.in.size() > at && call.in[at].dtype == DType::i32;
  return given ? call.in[at].as<int32_t>() + b * call.in[at].shape[1] : nullptr;
}

// With sinks, one for each head of this rank, or null. Where documents begin is input `begins_at`, if there at all.
void attend_all(const KernelCall& call, const Tensor* sinks, size_t begins_at) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const LocalShape& shape = call.in[0].shape;
    int64_t length = shape[1], width = shape[2];
    LocalHeads heads = local_heads(call.attrs, width);
    int64_t blocks = ceil_div(length, kQueriesPerBlock), scratch = attend_scratch(heads.widest());
    const T* qkv = call.in[0].as<T>();
    T *y = call.out[0].as<T>(), *lse = call.out[1].as<T>();
    const AttentionDropout dropout(call.attrs, call.in, call.out[0]);
    call.team.parallel_for(shape[0] * heads.q * blocks, [&](int64_t task, int thread) {
      int64_t b = task / blocks / heads.q, head = task / blocks % heads.q;
      int64_t first = (blocks - 1 - task % blocks) * kQueriesPerBlock;  // long blocks first, for balance
      const T* sequence = qkv + b * length * width;
      int64_t kv = heads.kv_of(head);
      const int32_t* begins = begins_of(call, begins_at, b);
      attend(Attend<T>{.queries = std::min(kQueriesPerBlock, length - first),
                       .first = first,
                       .dim = heads.dim,
                       .value_dim = heads.value_dim,
                       .q = {sequence + first * width + heads.q_at(head), width},
                       .k = {sequence + heads.k_at(kv), width},
                       .v = {sequence + heads.v_at(kv), width},
                       .y = y + (b * length + first) * heads.y_width() + heads.y_at(head),
                       .y_stride = heads.y_width(),
                       .lse = lse + (b * heads.q + head) * length + first,
                       .begins = begins ? begins + first : nullptr,
                       .slope = static_cast<T>(alibi_slope_of(call.attrs, call.out[0], head)),
                       .places = {.distance = first},
                       .scale = static_cast<T>(attention_scale_of(call.attrs)),
                       .range = key_range_of(call.attrs),
                       .dropout = dropout.of(b, head, first, 0),
                       .sink = sinks ? sinks->as<T>() + head : nullptr},
             call.workspace + thread * scratch);
    });
  });
}

void run_attention(const KernelCall& call) {
  attend_all(call, nullptr, 1);
}

void run_sink_attention(const KernelCall& call) {
  attend_all(call, &call.in[1], 2);
}

// All query heads of one key head belong to one task: their contributions to dk and dv add up in a fixed order.
void run_attention_backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const LocalShape& shape = call.in[1].shape;
    int64_t length = shape[1], width = shape[2];
    LocalHeads heads = local_heads(call.attrs, width);
    int64_t scratch = attend_backward_scratch(heads.widest()), group = heads.q / heads.kv;
    const AttentionDropout dropout(call.attrs, call.in, call.in[0]);
    call.team.parallel_for(shape[0] * heads.kv, [&](int64_t task, int thread) {
      int64_t b = task / heads.kv, kv = task % heads.kv;
      const T* qkv = call.in[1].as<T>() + b * length * width;
      T* dqkv = call.out[0].as<T>() + b * length * width;
      for (int64_t row = 0; row < length; ++row) {
        std::fill_n(dqkv + row * width + heads.k_at(kv), heads.dim, T(0));
        std::fill_n(dqkv + row * width + heads.v_at(kv), heads.value_dim, T(0));
      }
      for (int64_t head = kv * group; head < (kv + 1) * group; ++head) {
        int64_t y_at = b * length * heads.y_width() + heads.y_at(head);
        attend_backward(AttendGradient<T>{.queries = length,
                                          .keys = length,
                                          .diagonal = 0,
                                          .dim = heads.dim,
                                          .value_dim = heads.value_dim,
                                          .q = {qkv + heads.q_at(head), width},
                                          .k = {qkv + heads.k_at(kv), width},
                                          .v = {qkv + heads.v_at(kv), width},
                                          .y = {call.in[2].as<T>() + y_at, heads.y_width()},
                                          .dy = {call.in[0].as<T>() + y_at, heads.y_width()},
                                          .lse = call.in[3].as<T>() + (b * heads.q + head) * length,
                                          .dq = dqkv + heads.q_at(head),
                                          .dq_stride = width,
                                          .dq_write = Write::over,
                                          .dk = dqkv + heads.k_at(kv),
                                          .dv = dqkv + heads.v_at(kv),
                                          .dkv_stride = width,
                                          .begins = begins_of(call, 4, b),
                                          .slope = static_cast<T>(alibi_slope_of(call.attrs, call.in[0], head)),
                                          .places = {},
                                          .scale = static_cast<T>(attention_scale_of(call.attrs)),
                                          .range = key_range_of(call.attrs),
                                          .dropout = dropout.of(b, head, 0, 0)},
                        call.workspace + thread * scratch);
      }
    });
  });
}

}  // namespace

const CpuKernel attention{.run = run_attention};
const CpuKernel sink_attention{.run = run_sink_attention};
const CpuKernel attention_backward{.run = run_attention_backward};

}  // namespace sextant::cpu
