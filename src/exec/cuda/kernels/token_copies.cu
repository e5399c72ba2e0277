#include "base/units.h"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"
#include "targets/copy_runs.h"
#include "targets/token_groups.h"

namespace sextant::cuda {

namespace {

struct CopyMap {
  TokenGroups groups;
  const int32_t* experts;
  int32_t *copies, *sources, *row_experts;
  QueueCounts* queues;
  int64_t top_k, blocks, experts_of_block, capacity, copies_of_block, tokens_of_round, round;
};

// The sum over the lanes up to this one.
__device__ inline int sum_up_to(int x, int lane) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int before = __shfl_up_sync(kWholeWarp, x, distance);
    if (lane >= distance) x += before;
  }
  return x;
}

// One warp takes the tokens of a group in order, 32 at a time, for one block of experts.
__global__ void __launch_bounds__(32) map_copies(CopyMap map) {
  const int lane = static_cast<int>(threadIdx.x);
  const int64_t group = blockIdx.x, block = blockIdx.y, queue = group * map.blocks + block;
  const int64_t all_experts = map.blocks * map.experts_of_block, first_expert = block * map.experts_of_block;
  int32_t* copies = map.copies + queue * map.copies_of_block;
  int32_t *sources = map.sources + queue * map.capacity, *row_experts = map.row_experts + queue * map.capacity;
  for (int64_t i = lane; i < map.copies_of_block; i += 32) copies[i] = -1;
  for (int64_t i = lane; i < map.capacity; i += 32) sources[i] = row_experts[i] = -1;
  __syncwarp();
  int64_t slots = 0, sent = 0, served = 0;  // of the rounds so far
  for (int64_t first = 0; first < map.groups.tokens(); first += map.tokens_of_round) {
    const int64_t end = min(first + map.tokens_of_round, map.groups.tokens());
    const bool taken = first == map.round * map.tokens_of_round;
    int64_t slots_before = 0, sent_before = 0;  // of the round's tokens so far
    for (int64_t token = first + lane; token - lane < end; token += 32) {
      const int32_t* chosen = map.experts + (token < end ? map.groups.row(group, token) * map.top_k : 0);
      int here = 0, first_slot = -1;
      for (int j = 0; token < end && j < map.top_k; ++j) {
        const int64_t expert = chosen[j] - first_expert;
        if (chosen[j] < 0 || expert < 0 || expert >= map.experts_of_block) continue;
        if (here == 0) first_slot = j;
        ++here;
      }
      const unsigned sending = __ballot_sync(kWholeWarp, here > 0);
      const int64_t row_end = slots_before + sum_up_to(here, lane);  // with this token's
      const int64_t copy_end = sent_before + __popc(sending & (0xffffffffu >> (31 - lane)));
      const bool fits = here > 0 && row_end <= map.capacity && copy_end <= map.copies_of_block;
      if (fits) served += here;
      if (fits && taken) {
        copies[copy_end - 1] = static_cast<int32_t>(token * map.top_k + first_slot);
        int64_t row = row_end - here;
        for (int j = first_slot; j < map.top_k; ++j) {
          const int64_t expert = chosen[j] - first_expert;
          if (chosen[j] < 0 || expert < 0 || expert >= map.experts_of_block) continue;
          sources[row] = static_cast<int32_t>(token * map.top_k + j);
          row_experts[row++] = static_cast<int32_t>(token * all_experts + chosen[j]);
        }
      }
      slots_before = __shfl_sync(kWholeWarp, row_end, 31);
      sent_before = __shfl_sync(kWholeWarp, copy_end, 31);
    }
    slots += slots_before;
    sent += sent_before;
  }
  served = warp_sum(served);
  if (lane == 0) map.queues[queue] = {slots, sent, served};
}

constexpr int kCountThreads = 256;

// lost[blockIdx.x]; a whole number, so the order of the sum does not matter.
__global__ void __launch_bounds__(kCountThreads)
    count_lost_copies(const QueueCounts* queues, int64_t count, int64_t capacity, int64_t copies, int64_t rounds,
                      float* lost) {
  const int64_t times = blockIdx.x + int64_t{1};
  double left = 0;
  for (int64_t i = threadIdx.x; i < count; i += kCountThreads) {
    const QueueCounts& queue = queues[i];
    const int64_t beyond = max(queue.slots - times * capacity, queue.copies - times * copies);
    left += static_cast<double>(times == rounds ? queue.slots - queue.served : max(beyond, int64_t{0}));
  }
  left = block_sum<kCountThreads>(left);
  if (threadIdx.x == 0) lost[blockIdx.x] = static_cast<float>(left);
}

void run_copies_map(const CudaCall& call) {
  const Tensor& experts = call.in[0];
  TokenGroups groups(call.attrs, call.out[0].shape);
  CopyMap map{.groups = groups,
              .experts = experts.as<const int32_t>(),
              .copies = call.out[0].as<int32_t>(),
              .sources = call.out[1].as<int32_t>(),
              .row_experts = call.out[2].as<int32_t>(),
              .queues = reinterpret_cast<QueueCounts*>(call.workspace),
              .top_k = experts.shape.last(),
              .blocks = call.attrs.integer("blocks"),
              .experts_of_block = call.attrs.integer("experts_per_block"),
              .capacity = call.attrs.integer("capacity"),
              .copies_of_block = call.attrs.integer("copies"),
              .tokens_of_round = call.attrs.integer("tokens"),
              .round = call.attrs.integer("round")};
  dim3 queues(static_cast<unsigned>(groups.count), static_cast<unsigned>(map.blocks));
  if (groups.count > 0) map_copies<<<queues, 32, 0, call.stream>>>(map);
  count_lost_copies<<<static_cast<unsigned>(call.out[3].count()), kCountThreads, 0, call.stream>>>(
      map.queues, groups.count * map.blocks, map.capacity, map.copies_of_block,
      ceil_div(groups.tokens(), map.tokens_of_round), call.out[3].as<float>());
}

// One warp for a block of rows: copy_of[row], -1 where there is none, and first_row[copy], -1 where it has none; either
// may be left out.
__global__ void __launch_bounds__(32) find_runs(CopyRuns runs, int32_t* copy_of, int32_t* first_row) {
  const int lane = static_cast<int>(threadIdx.x);
  const int64_t block = blockIdx.x, begin = block * runs.capacity, end = begin + runs.capacity;
  if (first_row)
    for (int64_t i = lane; i < runs.copies; i += 32) first_row[block * runs.copies + i] = -1;
  __syncwarp();
  int64_t before = 0;
  for (int64_t row = begin + lane; row - lane < end; row += 32) {
    const bool begins = row < end && runs.begins(row);
    const unsigned beginning = __ballot_sync(kWholeWarp, begins);
    const int64_t copy = before + __popc(beginning & (0xffffffffu >> (31 - lane))) - 1;
    if (row < end) {
      const bool has = runs.experts[row] >= 0 && copy < runs.copies;
      if (copy_of) copy_of[row] = has ? static_cast<int32_t>(block * runs.copies + copy) : -1;
      if (first_row && begins && has) first_row[block * runs.copies + copy] = static_cast<int32_t>(row);
    }
    before += __popc(beginning);
  }
}

template <class T, int V>
struct SpreadCopies {
  const T* x;
  const int32_t* copy_of;
  T* y;
  int64_t width;

  __device__ void operator()(int64_t row, int64_t column) const {
    float values[V] = {};
    if (copy_of[row] >= 0) load_floats(x + copy_of[row] * width + column, values);
    store_floats(y + row * width + column, values);
  }
};

void run_copies_to_rows(const CudaCall& call) {
  const Tensor &x = call.in[0], &rows = call.in[1];
  CopyRuns runs(call.attrs, rows.as<const int32_t>(), rows.shape);
  auto* copy_of = reinterpret_cast<int32_t*>(call.workspace);
  if (runs.blocks > 0) find_runs<<<static_cast<unsigned>(runs.blocks), 32, 0, call.stream>>>(runs, copy_of, nullptr);
  const int64_t width = x.shape.last();
  for_cuda_vectors(x.dtype, width, [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, runs.rows(), width,
                       SpreadCopies<T, V>{x.as<const T>(), copy_of, call.out[0].as<T>(), width});
  });
}

template <class T, int V>
struct SumCopies {
  CopyRuns runs;
  const T* x;
  const int32_t* first_row;
  T* y;
  int64_t width;

  __device__ void operator()(int64_t copy, int64_t column) const {
    float sums[V] = {};
    int64_t row = first_row[copy];
    const int64_t end = (copy / runs.copies + 1) * runs.capacity;
    for (bool more = row >= 0; more; ++row) {
      float values[V];
      load_floats(x + row * width + column, values);
#pragma unroll
      for (int i = 0; i < V; ++i) sums[i] += values[i];
      more = row + 1 < end && runs.same(row, row + 1);
    }
    store_floats(y + copy * width + column, sums);
  }
};

void run_rows_to_copies(const CudaCall& call) {
  const Tensor &x = call.in[0], &rows = call.in[1];
  CopyRuns runs(call.attrs, rows.as<const int32_t>(), rows.shape);
  auto* first_row = reinterpret_cast<int32_t*>(call.workspace);
  if (runs.blocks > 0) find_runs<<<static_cast<unsigned>(runs.blocks), 32, 0, call.stream>>>(runs, nullptr, first_row);
  const int64_t width = x.shape.last();
  for_cuda_vectors(x.dtype, width, [&]<class T, int V>() {
    for_row_vectors<V>(call.stream, runs.blocks * runs.copies, width,
                       SumCopies<T, V>{runs, x.as<const T>(), first_row, call.out[0].as<T>(), width});
  });
}

}  // namespace

const CudaKernel copies_map{.launch = run_copies_map};
const CudaKernel copies_to_rows{.launch = run_copies_to_rows};
const CudaKernel rows_to_copies{.launch = run_rows_to_copies};

}  // namespace sextant::cuda
