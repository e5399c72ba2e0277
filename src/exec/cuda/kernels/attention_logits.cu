// The largest logit: a warp takes a query, its lanes the keys that it sees. A maximum does not depend on the order, so
// warps join theirs as they come.
#include <cmath>

#include "exec/alibi.h"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"
#include "exec/cuda/runtime/real_type.h"
#include "ops/attention_scale.h"
#include "ops/attention_window.h"
#include "targets/cuda/statistics_sizes.h"
#include "targets/local_heads.h"

namespace sextant::cuda {

namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;

// Bits that are ordered as the numbers are, with NaN above all; 0 is below every number.
__device__ inline uint32_t ordered_bits(float x) {
  if (isnan(x)) return 0xffffffffu;
  uint32_t bits = __float_as_uint(x);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

__device__ inline float number_of(uint32_t ordered) {
  return __uint_as_float((ordered & 0x80000000u) != 0 ? ordered & 0x7fffffffu : ~ordered);
}

template <class T>
struct Logits {
  const T* qkv;
  const int32_t* begins;  // may be null
  int64_t sequences, length, width;
  LocalHeads heads;
  KeyRange range;
  float factor;
  int64_t first_head, model_heads;  // of ALiBi; 0 heads: without
};

// As alibi_slope has it.
__device__ inline float slope_of(int64_t head, int64_t heads) {
  if (heads == 0) return 0;
  int64_t n = 1;
  while (2 * n <= heads) n *= 2;
  float step = -8.0f / static_cast<float>(n);
  return exp2f(step * (head < n ? static_cast<float>(head + 1) : static_cast<float>(head - n) + 0.5f));
}

template <class T>
__global__ void __launch_bounds__(kThreads) largest_logits(Logits<T> a, uint32_t* largest) {
  int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= a.sequences * a.heads.q * a.length) return;
  int64_t i = row % a.length, head = row / a.length % a.heads.q, b = row / a.length / a.heads.q;
  const T* sequence = a.qkv + b * a.length * a.width;
  const T *q = sequence + i * a.width + head * a.heads.dim,
          *keys = sequence + (a.heads.q + head * a.heads.kv / a.heads.q) * a.heads.dim;
  int64_t first = a.range.window > 0 ? max(int64_t{0}, i + 1 - a.range.window) : 0;
  if (a.range.chunk > 0) first = max(first, i / a.range.chunk * a.range.chunk);
  if (a.begins) first = max(first, min(static_cast<int64_t>(a.begins[b * a.length + i]), i));
  float slope = slope_of(a.first_head + head, a.model_heads);
  uint32_t most = 0;
  for (int64_t j = first + threadIdx.x % 32; j <= i; j += 32) {
    const T* k = keys + j * a.width;
    float dot = 0;
    for (int64_t d = 0; d < a.heads.dim; ++d) dot += static_cast<float>(q[d]) * static_cast<float>(k[d]);
    most = max(most, ordered_bits(a.factor * dot - slope * static_cast<float>(i - j)));
  }
  most = __reduce_max_sync(kWholeWarp, most);
  if (threadIdx.x % 32 == 0 && most > __ldcg(largest)) atomicMax(largest, most);
}

__global__ void hand_out_logit(const uint32_t* largest, float* out) {
  *out = *largest == 0xffffffffu ? __uint_as_float(0x7fc00000u) : number_of(*largest);
}

void launch_attention_logits(const CudaCall& call) {
  const Tensor& qkv = call.in[0];
  auto* largest = reinterpret_cast<uint32_t*>(call.workspace);
  check_cuda(cudaMemsetAsync(largest, 0, sizeof(uint32_t), call.stream), "clearing the largest logit");
  LocalHeads heads = local_heads(call.attrs, qkv.shape[2]);
  double scale = attention_scale_of(call.attrs);
  bool alibi = call.attrs.integer_or("alibi", 0) != 0;
  int64_t rows = qkv.shape[0] * heads.q * qkv.shape[1];
  for_cuda_type(qkv.dtype, [&]<class T>() {
    Logits<T> logits{.qkv = qkv.as<T>(),
                     .begins = call.in.size() > 1 ? call.in[1].as<int32_t>() : nullptr,
                     .sequences = qkv.shape[0],
                     .length = qkv.shape[1],
                     .width = qkv.shape[2],
                     .heads = heads,
                     .range = key_range_of(call.attrs),
                     .factor = static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(heads.dim))),
                     .first_head = qkv.global_index(2, 0) / heads.dim,
                     .model_heads = alibi ? call.attrs.integer("heads") : 0};
    if (rows > 0)
      largest_logits<<<static_cast<unsigned>(ceil_div(rows, kWarps)), kThreads, 0, call.stream>>>(logits, largest);
  });
  hand_out_logit<<<1, 1, 0, call.stream>>>(largest, call.out[0].as<float>());
}

}  // namespace

const CudaKernel attention_logits{.launch = launch_attention_logits};

}  // namespace sextant::cuda
