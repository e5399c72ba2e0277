// The products of experts on Hopper's tensor cores (wgmma): rows of slots are gathered as they are copied to shared
// memory, and what each expert has is read from device memory. Elsewhere, and for sizes that they do not take,
// expert_linear.cu has others.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "exec/cuda/kernels/slot_order.h"
#include "exec/cuda/runtime/device.h"

namespace sextant::cuda {

using Bf16 = __nv_bfloat16;

// How the weight of an expert lies: depth × columns, or columns × depth.
enum class Stored : uint8_t { depth_first, columns_first };

// The rows of an operand: tokens, several slots to a row; slots, one each; or slots in the order of experts.
struct SlotRows {
  int per_row = 1;  // slots
  bool in_order = false;

  // Of the slot at this place in the order of experts.
  __device__ int64_t of(const SlotOrder& order, int64_t place) const {
    return in_order ? place : order.order[place] / per_row;
  }
};

// c[slot] = a[row of the slot]·b(its expert).
template <class T>
struct GroupedRows {
  SlotOrder order;
  int64_t slots;  // of all experts, or more
  int expert_count;
  SlotRows a_rows, c_rows;
  const T* a;
  const T* b;
  T* c;
  int64_t depth, columns;
};

// dw[expert] (+)= Σ aᵀ·b over its slots. G: f32, or T.
template <class T, class G>
struct GroupedGradient {
  SlotOrder order;
  int64_t slots;  // of all experts, or more
  int expert_count;
  const T* a;
  const T* b;
  SlotRows a_rows, b_rows;
  G* dw;
  int64_t rows, columns;  // of one expert's matrix
  bool add;
};

bool takes_rows_on_hopper(const CudaDevice& device, const GroupedRows<Bf16>& rows);
void multiply_rows_on_hopper(const CudaDevice& device, const GroupedRows<Bf16>& rows, Stored stored,
                             cudaStream_t stream);

template <class G>
bool takes_gradients_on_hopper(const CudaDevice& device, const GroupedGradient<Bf16, G>& gradient);
// `gathered` holds the rows of b in the order of experts, slots × columns; or those of a, slots × rows, where b is in
// that order.
template <class G>
void sum_gradients_on_hopper(const CudaDevice& device, const GroupedGradient<Bf16, G>& gradient, Bf16* gathered,
                             cudaStream_t stream);

// Writes a thread's elements of one row of a tensor-core result: two neighbouring columns.
__device__ inline void write_pair(float* to, float2 pair, bool add) {
  auto* at = reinterpret_cast<float2*>(to);
  if (add) {
    float2 old = *at;
    pair.x += old.x, pair.y += old.y;
  }
  *at = pair;
}

__device__ inline void write_pair(Bf16* to, float2 pair, bool add) {
  auto* at = reinterpret_cast<__nv_bfloat162*>(to);
  if (add) {
    float2 old = __bfloat1622float2(*at);
    pair.x += old.x, pair.y += old.y;
  }
  *at = __float22bfloat162_rn(pair);
}

}  // namespace sextant::cuda
