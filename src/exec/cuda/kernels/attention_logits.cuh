// Shared by the kernels that find the largest attention logit: the keys that a query sees, the bias that is added to a
// product, and the encoding of the maximum.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "exec/cuda/runtime/device.h"
#include "ops/attention_window.h"
#include "targets/local_heads.h"

namespace sextant::cuda {

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

  // That query i sees.
  __device__ int64_t first_key(int64_t b, int64_t i) const {
    int64_t first = range.window > 0 ? max(int64_t{0}, i + 1 - range.window) : 0;
    if (range.chunk > 0) first = max(first, i / range.chunk * range.chunk);
    if (begins) first = max(first, min(static_cast<int64_t>(begins[b * length + i]), i));
    return first;
  }
};

// As alibi_slope has it.
__device__ inline float slope_of(int64_t head, int64_t heads) {
  if (heads == 0) return 0;
  int64_t n = 1;
  while (2 * n <= heads) n *= 2;
  float step = -8.0f / static_cast<float>(n);
  return exp2f(step * (head < n ? static_cast<float>(head + 1) : static_cast<float>(head - n) + 0.5f));
}

// NaN where one of them is.
__device__ inline float larger(float a, float b) {
  float most;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
  return most;
}

// On Hopper's tensor cores (wgmma).
bool takes_logits_on_hopper(const CudaDevice& device, const Logits<__nv_bfloat16>& logits);
void launch_logits_on_hopper(const Logits<__nv_bfloat16>& logits, uint32_t* largest, cudaStream_t stream);

}  // namespace sextant::cuda
