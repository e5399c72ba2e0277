#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/tensor_list.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/independent_calls.h"
#include "exec/cuda/runtime/kernel.h"
#include "targets/cuda/update_sizes.h"

namespace sextant::cuda {

namespace {

constexpr int kThreads = kSquareThreads, kVector = kSquareVector, kRounds = kSquareRounds;
constexpr int64_t kElements = kSquareElements;  // of one block

struct Squares {
  const void* x;
  int64_t count;
  double* partials;  // one per block; null where one block is enough
  float* y;
};

using SquaresList = TensorList<Squares, 96>;

template <class T>
__global__ void __launch_bounds__(kThreads) square_blocks(const __grid_constant__ SquaresList list) {
  int tensor = list.tensor_of(blockIdx.x);
  const Squares& squares = list.entries[tensor];
  int64_t block = blockIdx.x - list.first_block[tensor], n = squares.count;
  const T* x = static_cast<const T*>(squares.x);
  float sum = 0;
#pragma unroll 4
  for (int round = 0; round < kRounds; ++round) {
    int64_t at = block * kElements + (static_cast<int64_t>(round) * kThreads + threadIdx.x) * kVector;
    if (at + kVector <= n) {
      float value[kVector];
      load_floats(x + at, value);
#pragma unroll
      for (int i = 0; i < kVector; ++i) sum += value[i] * value[i];
    } else {
      for (int64_t i = at; i < n; ++i) sum += static_cast<float>(x[i]) * static_cast<float>(x[i]);
    }
  }
  double total = block_sum<kThreads>(static_cast<double>(sum));
  if (threadIdx.x != 0) return;
  if (squares.partials)
    squares.partials[block] = total;
  else
    *squares.y = static_cast<float>(total);
}

// One block per tensor, for those of several blocks (and of none).
__global__ void __launch_bounds__(kThreads) add_blocks(const __grid_constant__ SquaresList list) {
  const Squares& squares = list.entries[blockIdx.x];
  if (!squares.partials && squares.count > 0) return;
  int64_t blocks = (squares.count + kElements - 1) / kElements;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < blocks; i += kThreads) sum += squares.partials[i];
  sum = block_sum<kThreads>(sum);
  if (threadIdx.x == 0) *squares.y = static_cast<float>(sum);
}

int64_t workspace_of(const CudaCall& call) {
  return square_partial_bytes(call.in[0].count());
}

Squares squares_of(const CudaCall& call) {
  auto* partials = workspace_of(call) > 0 ? reinterpret_cast<double*>(call.workspace) : nullptr;
  return {call.in[0].data, call.in[0].count(), partials, call.out[0].as<float>()};
}

void launch_list(DType dtype, SquaresList& list, cudaStream_t stream) {
  if (list.tensors == 0) return;
  for_cuda_type(dtype, [&]<class T>() {
    if (list.blocks > 0) square_blocks<T><<<list.blocks, kThreads, 0, stream>>>(list);
  });
  add_blocks<<<static_cast<unsigned>(list.tensors), kThreads, 0, stream>>>(list);
  list = {};
}

void launch_all(CudaCalls calls) {
  for_independent_calls(calls, workspace_of, [](CudaCalls run) {
    for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      SquaresList list;
      for (const CudaCall& call : run) {
        if (call.in[0].dtype != dtype) continue;
        if (list.full()) launch_list(dtype, list, call.stream);
        list.add(squares_of(call), kElements);
      }
      launch_list(dtype, list, run.front().stream);
    }
  });
}

}  // namespace

const CudaKernel sum_squares{.launch_all = launch_all};

}  // namespace sextant::cuda
