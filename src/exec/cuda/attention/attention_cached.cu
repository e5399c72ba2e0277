#include "base/units.h"
#include "exec/cuda/attention/alibi.h"
#include "exec/cuda/attention/own_attention.h"
#include "exec/cuda/runtime/kernel.h"
#include "exec/cuda/runtime/real_type.h"
#include "ops/attention_scale.h"
#include "ops/attention_window.h"
#include "targets/local_heads.h"

namespace sextant::cuda {

namespace {

constexpr int kThreads = 256;
constexpr size_t kSinks = 4;  // the input that may be left out

// One part of packed rows [b, length, width], `kv` heads of `dim` from column `column` on, into a cache [b, kv,
// capacity, dim], beginning at position *start.
template <class T>
struct Extension {
  const T* qkv;
  T* cache;
  const int32_t* start;
  int64_t batch, length, capacity;
  int64_t width, column, kv, dim;
};

template <class T>
__global__ void extend_cache(Extension<T> x) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= x.batch * x.length * x.kv * x.dim) return;
  int64_t element = i % (x.kv * x.dim), row = i / (x.kv * x.dim);
  int64_t head = element / x.dim, position = *x.start + row % x.length;
  if (position >= x.capacity) return;
  int64_t to = ((row / x.length * x.kv + head) * x.capacity + position) * x.dim + element % x.dim;
  x.cache[to] = x.qkv[row * x.width + x.column + element];
}

void launch(const CudaCall& call) {
  const Tensor& qkv = call.in[0];
  const int64_t batch = qkv.shape[0], length = qkv.shape[1], width = qkv.shape[2], capacity = call.in[1].shape[2];
  const LocalHeads heads = local_heads(call.attrs, width);
  const int32_t* start = call.in[3].as<const int32_t>();
  if (batch * length * heads.kv == 0) return;
  for_cuda_type(qkv.dtype, [&]<class T>() {
    auto extend = [&](const Tensor& cache, int64_t column, int64_t dim) {
      Extension<T> extension{.qkv = qkv.as<const T>(),
                             .cache = cache.as<T>(),
                             .start = start,
                             .batch = batch,
                             .length = length,
                             .capacity = capacity,
                             .width = width,
                             .column = column,
                             .kv = heads.kv,
                             .dim = dim};
      auto blocks = static_cast<unsigned>(ceil_div(batch * length * heads.kv * dim, kThreads));
      extend_cache<T><<<blocks, kThreads, 0, call.stream>>>(extension);
    };
    extend(call.out[1], heads.k_at(0), heads.dim);
    extend(call.out[2], heads.v_at(0), heads.value_dim);
  });
  AttentionForward block;
  block.dtype = qkv.dtype;
  block.batch = batch;
  block.heads = heads.q;
  block.kv_heads = heads.kv;
  block.dim = heads.dim;
  block.value_dim = heads.value_dim;
  block.scale = static_cast<float>(attention_scale_of(call.attrs));
  block.range = key_range_of(call.attrs);
  block.queries = length;
  block.start = start;
  block.q = {qkv.data, length * width, heads.dim, width};
  block.k = {call.out[1].data, heads.kv * capacity * heads.dim, capacity * heads.dim, heads.dim};
  block.v = {call.out[2].data, heads.kv * capacity * heads.value_dim, capacity * heads.value_dim, heads.value_dim};
  block.y = {call.out[0].data, length * heads.y_width(), heads.value_dim, heads.y_width()};
  if (call.in.size() > kSinks) block.sinks = call.in[kSinks].data;
  set_alibi(block, call.attrs, call.out[0]);
  attend(block, call.stream);
}

}  // namespace

const CudaKernel attention_cached{.launch = launch};

}  // namespace sextant::cuda
