#include "exec/cuda/kernels/tensor_list.cuh"
#include "exec/cuda/runtime/independent_calls.h"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

constexpr int kCopyThreads = 256, kCopyUnroll = 4, kCopyRounds = 4;
constexpr int64_t kCopyStep = int64_t{kCopyThreads} * int64_t{sizeof(uint4)};
constexpr int64_t kCopyBytes = kCopyStep * kCopyUnroll * kCopyRounds;  // of one block

struct Copied {
  const void* from;
  void* to;
  int64_t count;  // bytes
};

using CopiedList = TensorList<Copied, 128>;

__global__ void __launch_bounds__(kCopyThreads) copy_blocks(const __grid_constant__ CopiedList list) {
  const int tensor = list.tensor_of(blockIdx.x);
  const Copied& copied = list.entries[tensor];
  const auto* from = static_cast<const std::byte*>(copied.from);
  auto* to = static_cast<std::byte*>(copied.to);
  const int64_t begin = (blockIdx.x - list.first_block[tensor]) * kCopyBytes;
  const int64_t end = min(copied.count, begin + kCopyBytes);
  const int64_t pieces_end = end - end % static_cast<int64_t>(sizeof(uint4));
  for (int64_t at = begin + threadIdx.x * sizeof(uint4); at < pieces_end; at += kCopyUnroll * kCopyStep) {
    uint4 pieces[kCopyUnroll];
#pragma unroll
    for (int u = 0; u < kCopyUnroll; ++u)
      if (at + u * kCopyStep < pieces_end) pieces[u] = *reinterpret_cast<const uint4*>(from + at + u * kCopyStep);
#pragma unroll
    for (int u = 0; u < kCopyUnroll; ++u)
      if (at + u * kCopyStep < pieces_end) *reinterpret_cast<uint4*>(to + at + u * kCopyStep) = pieces[u];
  }
  if (int64_t last = pieces_end + threadIdx.x; last < end) to[last] = from[last];
}

void launch_list(CopiedList& list, cudaStream_t stream) {
  if (list.blocks > 0) copy_blocks<<<list.blocks, kCopyThreads, 0, stream>>>(list);
  list = {};
}

void launch_duplicate(CudaCalls calls) {
  auto no_workspace = [](const CudaCall&) { return int64_t{0}; };
  for_independent_calls(calls, no_workspace, [](CudaCalls run) {
    CopiedList list;
    for (const CudaCall& call : run) {
      if (list.full()) launch_list(list, call.stream);
      const Tensor& x = call.in[0];
      list.add({x.data, call.out[0].data, x.count() * size_of(x.dtype)}, kCopyBytes);
    }
    launch_list(list, run.front().stream);
  });
}

}  // namespace

const CudaKernel duplicate{.launch_all = launch_duplicate};

}  // namespace sextant::cuda
