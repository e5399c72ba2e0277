#include <algorithm>

#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/tensor_list.cuh"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/state_sums.h"

namespace sextant {

namespace {

constexpr int kThreads = 256;
constexpr int kRounds = 16;
constexpr int64_t kBlockBytes = int64_t{kThreads} * 16 * kRounds;

// The list is passed as a kernel parameter, which has at most 4 KiB.
using StateList = cuda::TensorList<DeviceState, 128>;

__device__ inline unsigned long long words_of(const uint4& part) {
  return static_cast<unsigned long long>(part.x) + part.y + part.z + part.w;
}

__global__ void __launch_bounds__(kThreads) sum_states(const __grid_constant__ StateList list, DeviceStateSum* sums) {
  int index = list.tensor_of(blockIdx.x);
  const DeviceState& state = list.entries[index];
  const auto* bytes = static_cast<const unsigned char*>(state.data);
  int64_t first = static_cast<int64_t>(blockIdx.x - list.first_block[index]) * kBlockBytes + threadIdx.x * int64_t{16};
  unsigned long long sum = 0;
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    int64_t at = first + int64_t{round} * kThreads * 16;
    if (at + 16 <= state.bytes)
      sum += words_of(*reinterpret_cast<const uint4*>(bytes + at));
    else
      for (int64_t i = at; i < state.bytes; ++i) sum += static_cast<unsigned long long>(bytes[i]) << (8 * (i % 4));
  }
  sum = cuda::block_sum<kThreads>(sum);
  if (threadIdx.x == 0) atomicAdd(&sums[state.place].running, sum);
}

__global__ void record_sums(const __grid_constant__ StateList list, DeviceStateSum* sums) {
  for (int i = static_cast<int>(threadIdx.x); i < list.tensors; i += kThreads) {
    DeviceStateSum& sum = sums[list.entries[i].place];
    sum = {sum.running, 0, 0};
  }
}

// One thread, which knows which is the first.
__global__ void verify_sums(const __grid_constant__ StateList list, DeviceStateSum* sums, ChangedStateReport* report) {
  for (int i = 0; i < list.tensors; ++i) {
    DeviceStateSum& sum = sums[list.entries[i].place];
    if (sum.running != sum.recorded && report->place < 0) *report = {list.entries[i].place, sum.recorded, sum.running};
    sum.running = 0;
  }
}

template <class Finish>
void launch_lists(std::span<const DeviceState> states, DeviceStateSum* sums, cudaStream_t stream,
                  const Finish& finish) {
  while (!states.empty()) {
    StateList list;
    for (; !states.empty() && !list.full(); states = states.subspan(1))
      list.add_blocks(states.front(), ceil_div(states.front().bytes, kBlockBytes));
    sum_states<<<list.blocks, kThreads, 0, stream>>>(list, sums);
    finish(list);
  }
  check_cuda(cudaGetLastError(), "checksums of states");
}

}  // namespace

void launch_record(std::span<const DeviceState> states, DeviceStateSum* sums, cudaStream_t stream) {
  launch_lists(states, sums, stream,
               [&](const StateList& list) { record_sums<<<1, kThreads, 0, stream>>>(list, sums); });
}

void launch_verify(std::span<const DeviceState> states, DeviceStateSum* sums, ChangedStateReport* report,
                   cudaStream_t stream) {
  launch_lists(states, sums, stream,
               [&](const StateList& list) { verify_sums<<<1, 1, 0, stream>>>(list, sums, report); });
}

}  // namespace sextant
