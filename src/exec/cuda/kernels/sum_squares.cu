#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/tensor_list.cuh"
#include "exec/cuda/kernels/vector.cuh"
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

bool overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  if (a_bytes == 0 || b_bytes == 0) return false;
  auto a_begin = reinterpret_cast<uintptr_t>(a), b_begin = reinterpret_cast<uintptr_t>(b);
  return a_begin < b_begin + static_cast<uintptr_t>(b_bytes) && b_begin < a_begin + static_cast<uintptr_t>(a_bytes);
}

// Tensors of one type, in launches of as many as may run together.
class Lists {
 public:
  Lists(DType dtype, cudaStream_t stream) : dtype_(dtype), stream_(stream) {}

  void add(const Squares& squares) {
    if (list_.full() || !runs_beside_all(squares)) launch();
    list_.add(squares, kElements);
  }

  void launch() {
    if (list_.tensors == 0) return;
    for_cuda_type(dtype_, [&]<class T>() {
      if (list_.blocks > 0) square_blocks<T><<<list_.blocks, kThreads, 0, stream_>>>(list_);
    });
    add_blocks<<<static_cast<unsigned>(list_.tensors), kThreads, 0, stream_>>>(list_);
    list_ = {};
  }

 private:
  // Memory may be planned for one op after the other: then what one writes overlaps what a neighbour still reads.
  bool runs_beside_all(const Squares& added) const {
    for (int i = 0; i < list_.tensors; ++i)
      if (!keeps_clear(added, list_.entries[i]) || !keeps_clear(list_.entries[i], added)) return false;
    return true;
  }

  bool keeps_clear(const Squares& writer, const Squares& other) const {
    int64_t bytes = square_partial_bytes(writer.count), other_bytes = other.count * size_of(dtype_);
    return !overlap(writer.y, sizeof(float), other.x, other_bytes) &&
           !overlap(writer.partials, bytes, other.x, other_bytes) &&
           !overlap(writer.partials, bytes, other.y, sizeof(float)) &&
           !overlap(writer.partials, bytes, other.partials, square_partial_bytes(other.count));
  }

  DType dtype_;
  cudaStream_t stream_;
  SquaresList list_;
};

void launch_all(CudaCalls calls) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    Lists lists(dtype, calls.front().stream);
    for (const CudaCall& call : calls) {
      const Tensor& x = call.in[0];
      if (x.dtype != dtype) continue;
      auto* partials = square_partial_bytes(x.count()) > 0 ? reinterpret_cast<double*>(call.workspace) : nullptr;
      lists.add({x.data, x.count(), partials, call.out[0].as<float>()});
    }
    lists.launch();
  }
}

}  // namespace

const CudaKernel sum_squares{.launch_all = launch_all};

}  // namespace sextant::cuda
