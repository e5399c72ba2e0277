#include "base/units.h"
#include "exec/cuda/kernels/amax.cuh"
#include "exec/cuda/kernels/tensor_list.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/independent_calls.h"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

constexpr int kAbsmaxThreads = 256;
constexpr int kAbsmaxUnroll = 4;  // vectors of a thread on their way at once
constexpr int kAbsmaxRounds = 4;

// Of one block.
template <class T>
constexpr int64_t kAbsmaxElements = int64_t{kAbsmaxThreads} * kFullVector<T>* kAbsmaxUnroll* kAbsmaxRounds;

struct Magnitudes {
  const void* x;
  int64_t count;
  float* largest;
};

using MagnitudesList = TensorList<Magnitudes, 128>;

__global__ void __launch_bounds__(kAbsmaxThreads) clear_largest(const __grid_constant__ MagnitudesList list) {
  if (static_cast<int>(threadIdx.x) < list.tensors) *list.entries[threadIdx.x].largest = 0;
}

template <class T>
__global__ void __launch_bounds__(kAbsmaxThreads) absmax_blocks(const __grid_constant__ MagnitudesList list) {
  constexpr int V = kFullVector<T>;
  constexpr int64_t step = int64_t{kAbsmaxThreads} * V;
  const int tensor = list.tensor_of(blockIdx.x);
  const Magnitudes& of = list.entries[tensor];
  const T* x = static_cast<const T*>(of.x);
  const int64_t begin = (blockIdx.x - list.first_block[tensor]) * kAbsmaxElements<T>;
  const int64_t end = min(of.count, begin + kAbsmaxElements<T>), vectors_end = end / V * V;
  uint32_t most = 0;
  for (int64_t at = begin + threadIdx.x * V; at < vectors_end; at += kAbsmaxUnroll * step) {
    Packed<T, V> packed[kAbsmaxUnroll] = {};
#pragma unroll
    for (int u = 0; u < kAbsmaxUnroll; ++u)
      if (at + u * step < vectors_end) packed[u] = load<V>(x + at + u * step);
#pragma unroll
    for (int u = 0; u < kAbsmaxUnroll; ++u) {
      float values[V];
      unpack(packed[u], values);
      most = max(most, largest_bits(values));
    }
  }
  if (int64_t last = vectors_end + threadIdx.x; last < end)
    most = max(most, magnitude_bits(static_cast<float>(x[last])));
  join_amax<float>(of.largest, most);
}

template <class T>
void launch_list(MagnitudesList& list, cudaStream_t stream) {
  if (list.tensors == 0) return;
  clear_largest<<<1, kAbsmaxThreads, 0, stream>>>(list);
  if (list.blocks > 0) absmax_blocks<T><<<list.blocks, kAbsmaxThreads, 0, stream>>>(list);
  list = {};
}

void launch_absmax(CudaCalls calls) {
  auto no_workspace = [](const CudaCall&) { return int64_t{0}; };
  for_independent_calls(calls, no_workspace, [](CudaCalls run) {
    for (DType dtype : {DType::f32, DType::bf16, DType::f16})
      for_cuda_type(dtype, [&]<class T>() {
        MagnitudesList list;
        for (const CudaCall& call : run) {
          if (call.in[0].dtype != dtype) continue;
          if (list.full()) launch_list<T>(list, call.stream);
          list.add({call.in[0].data, call.in[0].count(), call.out[0].as<float>()}, kAbsmaxElements<T>);
        }
        launch_list<T>(list, run.front().stream);
      });
  });
}

}  // namespace

const CudaKernel absmax{.launch_all = launch_absmax};

}  // namespace sextant::cuda
