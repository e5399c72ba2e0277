// Sums over all elements of a tensor: blocks add up their share, one block the shares, always in the same order.
// Tensors without padding are read 16 bytes at a time.
#include <algorithm>
#include <type_traits>

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

// f.add<V>(i, sums) adds what elements i to i + V − 1 have to say; sums[0] counts elements. One block writes its sums
// as they are handed out.
template <int kNumbers, int V, class F>
__global__ void __launch_bounds__(kThreads) sum_shares(F f, RealBox box, int64_t count, double* shares, float* out) {
  double sums[kNumbers] = {};
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads * V;
  const int64_t begin = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * V;
#pragma unroll 4
  for (int64_t i = begin; i < count; i += step) {
    if (V == 1 && !box.holds(i)) continue;
    sums[0] += V;
    f.template add<V>(i, sums);
  }
  if (gridDim.x > 1) return write_sums(sums, shares + static_cast<int64_t>(blockIdx.x) * kNumbers);
  __shared__ double all[kNumbers];
  write_sums(sums, all);
  if (threadIdx.x < kNumbers) out[threadIdx.x] = static_cast<float>(all[threadIdx.x]);
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

template <int kNumbers, class T, class F>
void launch_sums(const CudaCall& call, F f) {
  static_assert(kNumbers <= kMostStatistics);
  constexpr int kWide = kFullVector<T>;
  const int64_t count = call.in[0].count();
  const RealBox box(call.in[0]);
  const bool wide = !box.padded && count % kWide == 0;
  const int64_t each = int64_t{kThreads} * 4 * kWide;
  int blocks = static_cast<int>(std::clamp<int64_t>(ceil_div(count, each), 1, kStatisticsBlocks));
  auto* shares = reinterpret_cast<double*>(call.workspace);
  auto* out = call.out[0].as<float>();
  auto* kernel = wide ? sum_shares<kNumbers, kWide, F> : sum_shares<kNumbers, 1, F>;
  kernel<<<static_cast<unsigned>(blocks), kThreads, 0, call.stream>>>(f, box, count, shares, out);
  if (blocks > 1) join_shares<kNumbers><<<1, kThreads, 0, call.stream>>>(shares, blocks, out);
}

template <class T>
struct OfTensor {
  const T* x;
  float zero_below, largest;
  template <int V>
  __device__ void add(int64_t i, double (&sums)[4]) const {
    float values[V];
    load_floats<V>(x + i, values);
    int zeros = 0, beyond = 0;
#pragma unroll
    for (float value : values) {
      const float magnitude = fabsf(value);
      sums[1] += static_cast<double>(value) * static_cast<double>(value);
      zeros += magnitude <= zero_below ? 1 : 0;
      beyond += magnitude < largest ? 0 : 1;
    }
    sums[2] += zeros;
    sums[3] += beyond;
  }
};

template <class T>
struct OfRounding {
  const T* x;
  const uint8_t* q;
  uint8_t largest;
  template <int V>
  __device__ void add(int64_t i, double (&sums)[3]) const {
    using Bytes = std::conditional_t<V == 8, uint2, std::conditional_t<V == 4, uint32_t, uint8_t>>;
    static_assert(sizeof(Bytes) == V);
    float values[V];
    load_floats<V>(x + i, values);
    const Bytes bytes = *reinterpret_cast<const Bytes*>(q + i);
    int lost = 0, saturated = 0;
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const uint8_t magnitude = reinterpret_cast<const uint8_t*>(&bytes)[j] & 0x7F;
      lost += magnitude == 0 && values[j] != 0.0f ? 1 : 0;
      saturated += magnitude >= largest ? 1 : 0;
    }
    sums[1] += lost;
    sums[2] += saturated;
  }
};

template <class T>
struct OfChange {
  const T *before, *after;
  const void *low_before, *low_after;  // what makes them whole; may be null
  template <int V>
  __device__ void add(int64_t i, double (&sums)[3]) const {
    float was[V], now[V];
    load_parameters<V>(before + i, beside_at<T>(low_before, i), was);
    load_parameters<V>(after + i, beside_at<T>(low_after, i), now);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float change = now[j] - was[j];
      sums[1] += static_cast<double>(change) * static_cast<double>(change);
      sums[2] += static_cast<double>(now[j]) * static_cast<double>(now[j]);
    }
  }
};

void launch_tensor_statistics(const CudaCall& call) {
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    launch_sums<4, T>(call, OfTensor<T>{call.in[0].as<T>(), static_cast<float>(call.attrs.real("zero_below")),
                                        static_cast<float>(call.attrs.real("largest"))});
  });
}

void launch_rounding_statistics(const CudaCall& call) {
  const Fp8Format& format = fp8_format(call.in[1].dtype);
  uint8_t largest = fp8_bits(format, format.largest);
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    launch_sums<3, T>(call, OfRounding<T>{call.in[0].as<T>(), call.in[1].as<uint8_t>(), largest});
  });
}

void launch_change_statistics(const CudaCall& call) {
  auto low = [&](size_t i) -> const void* { return call.in.size() > i ? call.in[i].as<std::byte>() : nullptr; };
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    launch_sums<3, T>(call, OfChange<T>{call.in[0].as<T>(), call.in[1].as<T>(), low(2), low(3)});
  });
}

}  // namespace

const CudaKernel tensor_statistics{.launch = launch_tensor_statistics};
const CudaKernel rounding_statistics{.launch = launch_rounding_statistics};
const CudaKernel change_statistics{.launch = launch_change_statistics};

}  // namespace sextant::cuda
