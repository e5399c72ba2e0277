// Sums over all elements of a tensor: blocks add up their share, one block the shares, always in the same order.
#include <algorithm>

#include "base/error.h"
#include "base/fp8.h"
#include "base/units.h"
#include "exec/cuda/kernels/parameter.cuh"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "targets/cuda/statistics_sizes.h"

namespace sextant::cuda {

namespace {

constexpr int kThreads = 256, kMostDims = 4;

// Which elements of a shard are real: padding follows them along each dim.
struct RealBox {
  bool padded = false;
  int rank = 0;
  int64_t extent[kMostDims] = {}, real[kMostDims] = {};

  explicit RealBox(const Tensor& x) : rank(x.shape.rank()) {
    BUG_IF(rank > kMostDims, "statistics of a tensor of {} dims", rank);
    for (int dim = 0; dim < rank; ++dim) {
      extent[dim] = x.shape[dim];
      real[dim] = x.real_extent(dim);
      padded = padded || extent[dim] != real[dim];
    }
  }

  __device__ bool holds(int64_t at) const {
    if (!padded) return true;
    for (int dim = rank - 1; dim >= 0; --dim) {
      if (at % extent[dim] >= real[dim]) return false;
      at /= extent[dim];
    }
    return true;
  }
};

template <int kNumbers>
__device__ void write_sums(const double (&sums)[kNumbers], double* to) {
#pragma unroll
  for (int i = 0; i < kNumbers; ++i) {
    double sum = block_sum<kThreads>(sums[i]);
    if (threadIdx.x == 0) to[i] = sum;
    __syncthreads();
  }
}

// f(i, sums) adds what element i has to say; sums[0] counts elements.
template <int kNumbers, class F>
__global__ void __launch_bounds__(kThreads) sum_shares(F f, RealBox box, int64_t count, double* shares) {
  double sums[kNumbers] = {};
  int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    if (!box.holds(i)) continue;
    sums[0] += 1;
    f(i, sums);
  }
  write_sums(sums, shares + static_cast<int64_t>(blockIdx.x) * kNumbers);
}

template <int kNumbers>
__global__ void __launch_bounds__(kThreads) join_shares(const double* shares, int blocks, float* out) {
  double sums[kNumbers] = {};
  for (int block = static_cast<int>(threadIdx.x); block < blocks; block += kThreads)
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) sums[i] += shares[block * kNumbers + i];
  __shared__ double joined[kNumbers];
  write_sums(sums, joined);
  if (threadIdx.x < kNumbers) out[threadIdx.x] = static_cast<float>(joined[threadIdx.x]);
}

template <int kNumbers, class F>
void launch_sums(const CudaCall& call, F f) {
  static_assert(kNumbers <= kMostStatistics);
  int64_t count = call.in[0].count();
  int blocks = static_cast<int>(std::clamp<int64_t>(ceil_div(count, kThreads * 8), 1, kStatisticsBlocks));
  auto* shares = reinterpret_cast<double*>(call.workspace);
  sum_shares<kNumbers>
      <<<static_cast<unsigned>(blocks), kThreads, 0, call.stream>>>(f, RealBox(call.in[0]), count, shares);
  join_shares<kNumbers><<<1, kThreads, 0, call.stream>>>(shares, blocks, call.out[0].as<float>());
}

template <class T>
struct OfTensor {
  const T* x;
  float zero_below, largest;
  __device__ void operator()(int64_t i, double (&sums)[4]) const {
    float value = static_cast<float>(x[i]), magnitude = fabsf(value);
    sums[1] += static_cast<double>(value) * static_cast<double>(value);
    sums[2] += magnitude <= zero_below ? 1 : 0;
    sums[3] += magnitude < largest ? 0 : 1;
  }
};

template <class T>
struct OfRounding {
  const T* x;
  const uint8_t* q;
  uint8_t largest;
  __device__ void operator()(int64_t i, double (&sums)[3]) const {
    uint8_t magnitude = q[i] & 0x7F;
    sums[1] += magnitude == 0 && static_cast<float>(x[i]) != 0.0f ? 1 : 0;
    sums[2] += magnitude >= largest ? 1 : 0;
  }
};

template <class T>
struct OfChange {
  const T *before, *after;
  const void *low_before, *low_after;  // what makes them whole; may be null
  __device__ static float whole(const T* p, const void* low, int64_t i) {
    float value[1];
    load_parameters(p + i, beside_at<T>(low, i), value);
    return value[0];
  }
  __device__ void operator()(int64_t i, double (&sums)[3]) const {
    float now = whole(after, low_after, i), change = now - whole(before, low_before, i);
    sums[1] += static_cast<double>(change) * static_cast<double>(change);
    sums[2] += static_cast<double>(now) * static_cast<double>(now);
  }
};

void launch_tensor_statistics(const CudaCall& call) {
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    launch_sums<4>(call, OfTensor<T>{call.in[0].as<T>(), static_cast<float>(call.attrs.real("zero_below")),
                                     static_cast<float>(call.attrs.real("largest"))});
  });
}

void launch_rounding_statistics(const CudaCall& call) {
  const Fp8Format& format = fp8_format(call.in[1].dtype);
  uint8_t largest = fp8_bits(format, format.largest);
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    launch_sums<3>(call, OfRounding<T>{call.in[0].as<T>(), call.in[1].as<uint8_t>(), largest});
  });
}

void launch_change_statistics(const CudaCall& call) {
  auto low = [&](size_t i) -> const void* { return call.in.size() > i ? call.in[i].as<std::byte>() : nullptr; };
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    launch_sums<3>(call, OfChange<T>{call.in[0].as<T>(), call.in[1].as<T>(), low(2), low(3)});
  });
}

}  // namespace

const CudaKernel tensor_statistics{.launch = launch_tensor_statistics};
const CudaKernel rounding_statistics{.launch = launch_rounding_statistics};
const CudaKernel change_statistics{.launch = launch_change_statistics};

}  // namespace sextant::cuda
