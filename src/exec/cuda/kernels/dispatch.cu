#include "base/units.h"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"
#include "targets/token_groups.h"

namespace sextant::cuda {

namespace {

constexpr int kFillThreads = 256;

struct RowMap {
  TokenGroups groups;
  const int32_t* experts;
  int32_t *sources, *row_experts, *lengths;  // lengths of the queues of each group
  int64_t top_k, capacity, first, experts_of_block;
  int blocks;
};

// One warp takes the slots of a group in order, 32 at a time.
__global__ void __launch_bounds__(32) map_rows(RowMap map) {
  extern __shared__ int32_t queued[];  // in each block's queue
  const int lane = static_cast<int>(threadIdx.x);
  const int64_t group = blockIdx.x, rows = map.blocks * map.capacity, slots = map.groups.tokens() * map.top_k;
  int32_t *sources = map.sources + group * rows, *row_experts = map.row_experts + group * rows;
  for (int b = lane; b < map.blocks; b += 32) queued[b] = 0;
  __syncwarp();
  for (int64_t slot = lane; slot - lane < slots; slot += 32) {
    int32_t expert = -1;
    if (slot < slots) expert = map.experts[map.groups.row(group, slot / map.top_k) * map.top_k + slot % map.top_k];
    const int block = expert >= 0 ? static_cast<int>(expert / map.experts_of_block) : -1;
    const unsigned same = __match_any_sync(0xffffffffu, block);
    const int before = __popc(same & ((1u << lane) - 1));
    const int32_t begin = block >= 0 ? queued[block] : 0;
    const int64_t at = begin + before - map.first;
    if (block >= 0 && at >= 0 && at < map.capacity) {
      sources[block * map.capacity + at] = static_cast<int32_t>(slot);
      row_experts[block * map.capacity + at] = expert;
    }
    __syncwarp();
    if (block >= 0 && before == 0) queued[block] = begin + __popc(same);
    __syncwarp();
  }
  for (int b = lane; b < map.blocks; b += 32) map.lengths[group * map.blocks + b] = queued[b];
  for (int b = 0; b < map.blocks; ++b) {
    const int64_t filled = max(static_cast<int64_t>(queued[b]) - map.first, int64_t{0});
    for (int64_t at = min(filled, map.capacity) + lane; at < map.capacity; at += 32) {
      sources[b * map.capacity + at] = -1;
      row_experts[b * map.capacity + at] = -1;
    }
  }
}

constexpr int kQueueThreads = 256;

// lost[blockIdx.x]; a whole number, so the order of the sum does not matter.
__global__ void __launch_bounds__(kQueueThreads)
    count_lost(const int32_t* lengths, int64_t queues, int64_t capacity, float* lost) {
  const int64_t served = (blockIdx.x + int64_t{1}) * capacity;
  double left = 0;
  for (int64_t queue = threadIdx.x; queue < queues; queue += kQueueThreads)
    left += static_cast<double>(max(lengths[queue] - served, int64_t{0}));
  left = block_sum<kQueueThreads>(left);
  if (threadIdx.x == 0) lost[blockIdx.x] = static_cast<float>(left);
}

void run_dispatch_map(const CudaCall& call) {
  const Tensor& experts = call.in[0];
  TokenGroups groups(call.attrs, call.out[0].shape);
  const int64_t capacity = call.attrs.integer("capacity");
  RowMap map{.groups = groups,
             .experts = experts.as<const int32_t>(),
             .sources = call.out[0].as<int32_t>(),
             .row_experts = call.out[1].as<int32_t>(),
             .lengths = reinterpret_cast<int32_t*>(call.workspace),
             .top_k = experts.shape.last(),
             .capacity = capacity,
             .first = call.attrs.integer("round") * capacity,
             .experts_of_block = call.attrs.integer("experts_per_block"),
             .blocks = static_cast<int>(call.attrs.integer("blocks"))};
  auto shared = static_cast<size_t>(map.blocks) * sizeof(int32_t);
  if (groups.count > 0) map_rows<<<static_cast<unsigned>(groups.count), 32, shared, call.stream>>>(map);
  count_lost<<<static_cast<unsigned>(call.out[2].count()), kQueueThreads, 0, call.stream>>>(
      map.lengths, groups.count * map.blocks, capacity, call.out[2].as<float>());
}

template <class T, int V>
struct GatherRows {
  TokenGroups groups;
  const T* x;
  const int32_t* sources;
  T* y;
  int64_t rows, top_k, slots, width;

  __device__ void operator()(int64_t row, int64_t column) const {
    const int64_t source = sources[row];
    float values[V] = {};
    if (source >= 0 && source < slots) load_floats(x + groups.row(row / rows, source / top_k) * width + column, values);
    store_floats(y + row * width + column, values);
  }
};

void run_dispatch(const CudaCall& call) {
  const Tensor &x = call.in[0], &sources = call.in[1];
  TokenGroups groups(call.attrs, sources.shape);
  const int64_t top_k = call.attrs.integer("top_k"), width = x.shape.last();
  for_cuda_vectors(x.dtype, width, [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, sources.count(), width,
                       GatherRows<T, V>{groups, x.as<const T>(), sources.as<const int32_t>(), call.out[0].as<T>(),
                                        sources.shape.last(), top_k, groups.tokens() * top_k, width});
  });
}

// places[slot of a group] = the slot's row in [0, n); -1 before.
__global__ void __launch_bounds__(kFillThreads)
    find_places(const int32_t* sources, int64_t count, int64_t rows, int64_t slots, int32_t* places) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kFillThreads + threadIdx.x;
  if (i >= count) return;
  const int64_t source = sources[i];
  if (source >= 0 && source < slots) places[i / rows * slots + source] = static_cast<int32_t>(i % rows);
}

const int32_t* launch_places(const CudaCall& call, const TokenGroups& groups, const Tensor& sources, int64_t slots) {
  auto* places = reinterpret_cast<int32_t*>(call.workspace);
  check_cuda(cudaMemsetAsync(places, 0xff, static_cast<size_t>(groups.count * slots) * sizeof(int32_t), call.stream),
             "slots without a row");
  if (sources.count() > 0)
    find_places<<<static_cast<unsigned>(ceil_div(sources.count(), int64_t{kFillThreads})), kFillThreads, 0,
                  call.stream>>>(sources.as<const int32_t>(), sources.count(), sources.shape.last(), slots, places);
  return places;
}

template <class T, int V>
struct SumRows {
  TokenGroups groups;
  const T* x;
  const int32_t* places;
  T* y;
  int64_t rows, top_k, width;
  bool accumulate;

  __device__ void operator()(int64_t token, int64_t column) const {
    const int64_t group = token / groups.tokens();
    T* to = y + groups.row(group, token % groups.tokens()) * width + column;
    float sums[V] = {};
    if (accumulate) load_floats(to, sums);
    for (int64_t slot = token * top_k; slot < (token + 1) * top_k; ++slot) {
      if (places[slot] < 0) continue;
      float values[V];
      load_floats(x + (group * rows + places[slot]) * width + column, values);
#pragma unroll
      for (int i = 0; i < V; ++i) sums[i] += values[i];
    }
    store_floats(to, sums);
  }
};

void run_combine(const CudaCall& call) {
  const Tensor &x = call.in[0], &sources = call.in[1];
  TokenGroups groups(call.attrs, sources.shape);
  const int64_t top_k = call.attrs.integer("top_k"), width = x.shape.last();
  const int32_t* places = launch_places(call, groups, sources, groups.tokens() * top_k);
  for_cuda_vectors(x.dtype, width, [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, groups.count * groups.tokens(), width,
                       SumRows<T, V>{groups, x.as<const T>(), places, call.out[0].as<T>(), sources.shape.last(), top_k,
                                     width, call.accumulate()});
  });
}

struct WeightRows {
  TokenGroups groups;
  const float* from;
  const int32_t* sources;
  float* to;
  int64_t rows, top_k, slots;

  __device__ void operator()(int64_t row, int64_t) const {
    const int64_t source = sources[row];
    to[row] =
        source >= 0 && source < slots ? from[groups.row(row / rows, source / top_k) * top_k + source % top_k] : 0.0f;
  }
};

void run_dispatch_weights(const CudaCall& call) {
  const Tensor &weights = call.in[0], &sources = call.in[1];
  TokenGroups groups(call.attrs, sources.shape);
  const int64_t top_k = call.attrs.integer("top_k");
  for_row_vectors<1>(call.stream, sources.count(), 1,
                     WeightRows{groups, weights.as<const float>(), sources.as<const int32_t>(), call.out[0].as<float>(),
                                sources.shape.last(), top_k, groups.tokens() * top_k});
}

struct WeightSlots {
  TokenGroups groups;
  const float* from;
  const int32_t* places;
  float* to;
  int64_t rows, top_k, slots;
  bool accumulate;

  __device__ void operator()(int64_t slot, int64_t) const {
    const int64_t group = slot / slots, within = slot % slots;
    float& dweight = to[groups.row(group, within / top_k) * top_k + within % top_k];
    const float before = accumulate ? dweight : 0.0f;
    dweight = places[slot] < 0 ? before : before + from[group * rows + places[slot]];
  }
};

void run_dispatch_weights_backward(const CudaCall& call) {
  const Tensor &dy = call.in[0], &sources = call.in[1];
  TokenGroups groups(call.attrs, sources.shape);
  const int64_t top_k = call.attrs.integer("top_k"), slots = groups.tokens() * top_k;
  const int32_t* places = launch_places(call, groups, sources, slots);
  for_row_vectors<1>(call.stream, groups.count * slots, 1,
                     WeightSlots{groups, dy.as<const float>(), places, call.out[0].as<float>(), sources.shape.last(),
                                 top_k, slots, call.accumulate()});
}

}  // namespace

const CudaKernel dispatch_map{.launch = run_dispatch_map};
const CudaKernel dispatch{.launch = run_dispatch};
const CudaKernel combine{.launch = run_combine};
const CudaKernel dispatch_weights{.launch = run_dispatch_weights};
const CudaKernel dispatch_weights_backward{.launch = run_dispatch_weights_backward};

}  // namespace sextant::cuda
