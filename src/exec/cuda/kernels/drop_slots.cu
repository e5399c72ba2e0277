#include "base/units.h"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

struct SlotDrop {
  const float* weights;
  const int32_t* experts;
  float* kept_weights;
  int32_t* kept_experts;
  float* dropped;
  int32_t* lists;  // of each sequence, its slots by expert
  int64_t slots, expert_count, capacity;
  bool by_weight;
};

// Numbers in the order of floats.
__device__ inline uint32_t ordered(float x) {
  const uint32_t bits = __float_as_uint(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// One warp for a sequence and an expert.
__global__ void __launch_bounds__(32) drop_slots_of_expert(SlotDrop drop) {
  const int lane = static_cast<int>(threadIdx.x);
  const unsigned up_to = 0xffffffffu >> (31 - lane);
  const int64_t sequence = blockIdx.x, expert = blockIdx.y, first = sequence * drop.slots;
  int before = 0;  // slots of the sequence that ask for a lower expert
  for (int64_t slot = lane; slot < drop.slots; slot += 32) before += drop.experts[first + slot] < expert ? 1 : 0;
  int32_t* list = drop.lists + first + warp_sum(before);
  int count = 0;
  for (int64_t slot = lane; slot - lane < drop.slots; slot += 32) {
    const bool here = slot < drop.slots && drop.experts[first + slot] == expert;
    const unsigned asking = __ballot_sync(kWholeWarp, here);
    if (here) list[count + __popc(asking & up_to) - 1] = static_cast<int32_t>(slot);
    count += __popc(asking);
  }
  __syncwarp();
  const int capacity = static_cast<int>(min(drop.capacity, int64_t{count}));
  // The weight of the last one that is kept: the largest that `capacity` slots reach.
  uint32_t least = 0;
  int above = 0;  // slots with more than that
  if (drop.by_weight && count > capacity) {
    for (int bit = 31; bit >= 0; --bit) {
      const uint32_t tried = least | 1u << bit;
      int reach = 0;
      for (int i = lane; i < count; i += 32) reach += ordered(drop.weights[first + list[i]]) >= tried ? 1 : 0;
      if (warp_sum(reach) >= capacity) least = tried;
    }
    for (int i = lane; i < count; i += 32) above += ordered(drop.weights[first + list[i]]) > least ? 1 : 0;
    above = warp_sum(above);
  }
  int taken = 0;  // of those that are taken in the order of tokens
  const int room = capacity - above;
  for (int i = lane; i - lane < count; i += 32) {
    const int64_t slot = i < count ? first + list[i] : first;
    const uint32_t weight = drop.by_weight && count > capacity ? ordered(drop.weights[slot]) : least;
    const unsigned equal = __ballot_sync(kWholeWarp, i < count && weight == least);
    const bool kept = weight > least || (weight == least && taken + __popc(equal & up_to) <= room);
    taken += __popc(equal);
    if (i >= count) continue;
    drop.kept_weights[slot] = kept ? drop.weights[slot] : 0.0f;
    drop.kept_experts[slot] = kept ? static_cast<int32_t>(expert) : -1;
  }
  // Whole numbers: the order of the sum does not matter.
  if (lane == 0 && count > capacity) atomicAdd(drop.dropped, static_cast<float>(count - capacity));
}

void run_drop_slots(const CudaCall& call) {
  const Tensor& weights = call.in[0];
  SlotDrop drop{.weights = weights.as<const float>(),
                .experts = call.in[1].as<const int32_t>(),
                .kept_weights = call.out[0].as<float>(),
                .kept_experts = call.out[1].as<int32_t>(),
                .dropped = call.out[2].as<float>(),
                .lists = reinterpret_cast<int32_t*>(call.workspace),
                .slots = weights.shape[1] * weights.shape[2],
                .expert_count = call.attrs.integer("experts"),
                .capacity = call.attrs.integer("capacity"),
                .by_weight = call.attrs.integer_or("by_weight", 0) != 0};
  check_cuda(cudaMemsetAsync(drop.dropped, 0, sizeof(float), call.stream), "slots that are dropped");
  dim3 each(static_cast<unsigned>(weights.shape[0]), static_cast<unsigned>(drop.expert_count));
  if (weights.count() > 0) drop_slots_of_expert<<<each, 32, 0, call.stream>>>(drop);
}

struct KeptGradients {
  const float* dy;
  const int32_t* kept;
  float* dweights;

  __device__ void operator()(int64_t slot, int64_t) const { dweights[slot] = kept[slot] < 0 ? 0.0f : dy[slot]; }
};

void run_drop_slots_backward(const CudaCall& call) {
  for_row_vectors<1>(
      call.stream, call.in[0].count(), 1,
      KeptGradients{call.in[0].as<const float>(), call.in[1].as<const int32_t>(), call.out[0].as<float>()});
}

}  // namespace

const CudaKernel drop_slots{.launch = run_drop_slots};
const CudaKernel drop_slots_backward{.launch = run_drop_slots_backward};

}  // namespace sextant::cuda
