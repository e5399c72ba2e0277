// The sum of many scalars that lie apart (parts of the squared gradient norm), in double and in a fixed order. Their
// addresses travel as kernel parameters, kScalarsAtOnce at a time; between launches the sum rests in
// kScalarSumBytes of workspace.
#pragma once

#include <algorithm>
#include <span>

#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "targets/cuda/update_sizes.h"

namespace sextant::cuda {

constexpr int kScalarsAtOnce = 448;
static_assert(kScalarSumBytes == sizeof(double));

struct Scalars {
  int count;
  const float* at[kScalarsAtOnce];
};

enum class Chunk : uint8_t { first = 1, last = 2 };

template <class Finish>
__global__ void __launch_bounds__(kScalarsAtOnce)
    add_scalars_kernel(const __grid_constant__ Scalars scalars, double* running, int which, Finish finish) {
  double x = static_cast<int>(threadIdx.x) < scalars.count ? static_cast<double>(*scalars.at[threadIdx.x]) : 0.0;
  double sum = block_sum<kScalarsAtOnce>(x);
  if (threadIdx.x != 0) return;
  if (!(which & static_cast<int>(Chunk::first))) sum += *running;
  *running = sum;
  if (which & static_cast<int>(Chunk::last)) finish(sum);
}

// finish(sum) runs on the device, in one thread.
template <class Finish>
void sum_scalars(const CudaCall& call, const Finish& finish) {
  std::span<const Tensor> left = call.in;
  int which = static_cast<int>(Chunk::first);
  do {
    Scalars scalars{};
    scalars.count = static_cast<int>(std::min<size_t>(left.size(), kScalarsAtOnce));
    for (int i = 0; i < scalars.count; ++i) scalars.at[i] = left[static_cast<size_t>(i)].as<float>();
    left = left.subspan(static_cast<size_t>(scalars.count));
    if (left.empty()) which |= static_cast<int>(Chunk::last);
    add_scalars_kernel<<<1, kScalarsAtOnce, 0, call.stream>>>(scalars, reinterpret_cast<double*>(call.workspace), which,
                                                              finish);
    which = 0;
  } while (!left.empty());
}

}  // namespace sextant::cuda
