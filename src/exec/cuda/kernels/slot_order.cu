#include "exec/cuda/kernels/slot_order.h"

#include "exec/cuda/runtime/kernel.h"
#include "targets/cuda/expert_sizes.h"

namespace sextant::cuda {

namespace {

constexpr int kCountThreads = 256, kPlaceThreads = 1024;

struct Slots {
  SlotExperts experts;
  int64_t count;
  int expert_count;
  int32_t *order, *places, *offsets, *tiles, *counts;  // places: or null
};

// counts[block, expert].
__global__ void __launch_bounds__(kCountThreads) count_slots(Slots slots) {
  extern __shared__ int32_t counts[];
  for (int e = threadIdx.x; e < slots.expert_count; e += kCountThreads) counts[e] = 0;
  __syncthreads();
  const int64_t first = blockIdx.x * kSlotsPerBlock, end = min(first + kSlotsPerBlock, slots.count);
  for (int64_t i = first + threadIdx.x; i < end; i += kCountThreads)
    if (int expert = slots.experts.of(i); expert >= 0) atomicAdd(&counts[expert], 1);
  __syncthreads();
  for (int e = threadIdx.x; e < slots.expert_count; e += kCountThreads)
    slots.counts[static_cast<int64_t>(blockIdx.x) * slots.expert_count + e] = counts[e];
}

// Turns counts into where a block's slots of an expert begin among the expert's, and says where experts begin.
__global__ void __launch_bounds__(kPlaceThreads) place_experts(Slots slots, int blocks) {
  extern __shared__ int32_t totals[];
  for (int e = threadIdx.x; e < slots.expert_count; e += kPlaceThreads) {
    int32_t sum = 0;
#pragma unroll 8
    for (int b = 0; b < blocks; ++b) {
      int32_t& at = slots.counts[static_cast<int64_t>(b) * slots.expert_count + e];
      int32_t here = at;
      at = sum;
      sum += here;
    }
    totals[e] = sum;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  int32_t rows = 0, tiles = 0;
  for (int e = 0; e < slots.expert_count; ++e) {
    slots.offsets[e] = rows;
    slots.tiles[e] = tiles;
    rows += totals[e];
    tiles += static_cast<int32_t>((totals[e] + kExpertTileRows - 1) / kExpertTileRows);
  }
  slots.offsets[slots.expert_count] = rows;
  slots.tiles[slots.expert_count] = tiles;
}

// One warp takes the slots of a block in order, 32 at a time.
__global__ void __launch_bounds__(32) place_slots(Slots slots) {
  extern __shared__ int32_t next[];
  const int64_t at = static_cast<int64_t>(blockIdx.x) * slots.expert_count;
  for (int e = threadIdx.x; e < slots.expert_count; e += 32) next[e] = slots.offsets[e] + slots.counts[at + e];
  __syncwarp();
  const int64_t first = blockIdx.x * kSlotsPerBlock, end = min(first + kSlotsPerBlock, slots.count);
  for (int64_t i = first + threadIdx.x; i - threadIdx.x < end; i += 32) {
    int expert = i < end ? slots.experts.of(i) : -1;
    unsigned same = __match_any_sync(0xffffffffu, expert);
    int before = __popc(same & ((1u << threadIdx.x) - 1));
    int32_t begin = expert >= 0 ? next[expert] : 0;
    if (expert >= 0) {
      slots.order[begin + before] = static_cast<int32_t>(i);
      if (slots.places) slots.places[i] = begin + before;
    }
    __syncwarp();
    if (expert >= 0 && before == 0) next[expert] = begin + __popc(same);
    __syncwarp();
  }
}

// The tiles before each expert. One warp.
__global__ void __launch_bounds__(32) count_tiles(const int32_t* offsets, int expert_count, int32_t* tiles) {
  int32_t before = 0;
  for (int first = 0; first <= expert_count; first += 32) {
    const int expert = first + static_cast<int>(threadIdx.x);
    int32_t count = expert < expert_count ? offsets[expert + 1] - offsets[expert] : 0;
    count = static_cast<int32_t>((count + kExpertTileRows - 1) / kExpertTileRows);
    int32_t sum = count;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      int32_t lower = __shfl_up_sync(0xffffffffu, sum, distance);
      if (static_cast<int>(threadIdx.x) >= distance) sum += lower;
    }
    if (expert <= expert_count) tiles[expert] = before + sum - count;
    before += __shfl_sync(0xffffffffu, sum, 31);
  }
}

void sort_into(const Slots& slots, cudaStream_t stream) {
  auto blocks = static_cast<unsigned>(ceil_div(slots.count, kSlotsPerBlock));
  auto shared = static_cast<size_t>(slots.expert_count) * sizeof(int32_t);
  if (blocks > 0) count_slots<<<blocks, kCountThreads, shared, stream>>>(slots);
  place_experts<<<1, kPlaceThreads, shared, stream>>>(slots, static_cast<int>(blocks));
  if (blocks > 0) place_slots<<<blocks, 32, shared, stream>>>(slots);
}

void run_slot_order(const CudaCall& call) {
  const Tensor& experts = call.in[0];
  const int64_t slots = experts.count(), count = call.attrs.integer("experts");
  auto* made = call.out[0].as<int32_t>();
  sort_into({.experts = {.chosen = experts.as<const int32_t>()},
             .count = slots,
             .expert_count = static_cast<int>(count),
             .order = made,
             .places = made + slots,
             .offsets = call.out[1].as<int32_t>(),
             .tiles = reinterpret_cast<int32_t*>(call.workspace),
             .counts = reinterpret_cast<int32_t*>(call.workspace + tile_count_bytes(count))},
            call.stream);
}

}  // namespace

SlotOrder sort_slots(const SlotExperts& experts, int64_t count, int64_t expert_count, std::byte* workspace,
                     cudaStream_t stream) {
  SlotOrderSizes sizes(count, expert_count);
  auto at = [&](int64_t offset) { return reinterpret_cast<int32_t*>(workspace + offset); };
  Slots slots{.experts = experts,
              .count = count,
              .expert_count = static_cast<int>(expert_count),
              .order = at(0),
              .places = nullptr,
              .offsets = at(sizes.offsets),
              .tiles = at(sizes.tiles),
              .counts = at(sizes.counts)};
  sort_into(slots, stream);
  return {slots.order, slots.places, slots.offsets, slots.tiles, sizes.most_tiles};
}

SlotOrder tiles_of_order(const OrderedSlots& ordered, int64_t slots, int64_t expert_count, std::byte* workspace,
                         cudaStream_t stream) {
  auto* tiles = reinterpret_cast<int32_t*>(workspace);
  count_tiles<<<1, 32, 0, stream>>>(ordered.offsets, static_cast<int>(expert_count), tiles);
  return {ordered.order, ordered.places, ordered.offsets, tiles, SlotOrderSizes(slots, expert_count).most_tiles};
}

const CudaKernel slot_order{.launch = run_slot_order};

}  // namespace sextant::cuda
