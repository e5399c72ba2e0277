#include "exec/cuda/kernels/narrow.h"

#include "base/units.h"
#include "exec/cuda/runtime/real_type.h"

namespace sextant::cuda {

namespace {

constexpr int kNarrowThreads = 256;

template <class T>
__global__ void __launch_bounds__(kNarrowThreads) narrow_kernel(const float* from, T* to, int64_t count) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kNarrowThreads + threadIdx.x;
  if (i < count) to[i] = static_cast<T>(from[i]);
}

}  // namespace

void narrow_floats(const float* from, void* to, DType dtype, int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  for_cuda_type(dtype, [&]<class T>() {
    narrow_kernel<T><<<static_cast<unsigned>(ceil_div(count, kNarrowThreads)), kNarrowThreads, 0, stream>>>(
        from, static_cast<T*>(to), count);
  });
}

}  // namespace sextant::cuda
