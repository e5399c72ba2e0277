// Sums over all elements of a tensor: blocks add up their share, one block the shares, always in the same order,
// whatever other tensors share the launch. Tensors without padding are read 16 bytes at a time.
#include <algorithm>
#include <type_traits>

#include "base/error.h"
#include "base/fp8.h"
#include "base/units.h"
#include "exec/cuda/kernels/parameter.cuh"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/tensor_list.cuh"
#include "exec/cuda/runtime/independent_calls.h"
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

  RealBox() = default;
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

// One tensor. f.add<V>(i, sums) adds what elements i to i + V − 1 have to say; sums[0] counts elements.
template <class F>
struct Summed {
  F f;
  RealBox box;
  bool wide;  // several elements are read at once
  int64_t count;
  int64_t blocks;
  double* shares;  // of each block; not used where one is enough
  float* out;
};

template <class F>
using SummedList = TensorList<Summed<F>, 24>;

template <int V, class F, int kNumbers>
__device__ void add_share(const Summed<F>& of, int64_t block, double (&sums)[kNumbers]) {
  const int64_t step = of.blocks * kThreads * V;
#pragma unroll 4
  for (int64_t i = (block * kThreads + threadIdx.x) * V; i < of.count; i += step) {
    if (V == 1 && !of.box.holds(i)) continue;
    sums[0] += V;
    of.f.template add<V>(i, sums);
  }
}

template <int kNumbers, int kWide, class F>
__global__ void __launch_bounds__(kThreads) sum_shares(const __grid_constant__ SummedList<F> list) {
  const int tensor = list.tensor_of(blockIdx.x);
  const Summed<F>& of = list.entries[tensor];
  const int64_t block = blockIdx.x - list.first_block[tensor];
  double sums[kNumbers] = {};
  of.wide ? add_share<kWide>(of, block, sums) : add_share<1>(of, block, sums);
  if (of.blocks > 1) return write_sums(sums, of.shares + block * kNumbers);
  __shared__ double all[kNumbers];
  write_sums(sums, all);
  if (threadIdx.x < kNumbers) of.out[threadIdx.x] = static_cast<float>(all[threadIdx.x]);
}

// One block per tensor, for those of several blocks.
template <int kNumbers, class F>
__global__ void __launch_bounds__(kThreads) join_shares(const __grid_constant__ SummedList<F> list) {
  const Summed<F>& of = list.entries[blockIdx.x];
  if (of.blocks == 1) return;
  double sums[kNumbers] = {};
  for (int64_t block = threadIdx.x; block < of.blocks; block += kThreads)
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) sums[i] += of.shares[block * kNumbers + i];
  __shared__ double joined[kNumbers];
  write_sums(sums, joined);
  if (threadIdx.x < kNumbers) of.out[threadIdx.x] = static_cast<float>(joined[threadIdx.x]);
}

template <int kWide, class F>
Summed<F> summed(const CudaCall& call, const F& f) {
  const int64_t count = call.in[0].count(), each = int64_t{kThreads} * 4 * kWide;
  const RealBox box(call.in[0]);
  return {.f = f,
          .box = box,
          .wide = !box.padded && count % kWide == 0,
          .count = count,
          .blocks = std::clamp<int64_t>(ceil_div(count, each), 1, kStatisticsBlocks),
          .shares = reinterpret_cast<double*>(call.workspace),
          .out = call.out[0].as<float>()};
}

template <int kNumbers, int kWide, class F>
void launch_list(SummedList<F>& list, cudaStream_t stream) {
  static_assert(kNumbers <= kMostStatistics);
  if (list.tensors == 0) return;
  sum_shares<kNumbers, kWide, F><<<list.blocks, kThreads, 0, stream>>>(list);
  join_shares<kNumbers, F><<<static_cast<unsigned>(list.tensors), kThreads, 0, stream>>>(list);
  list = {};
}

// of.operator()<T>(call) says what is summed of a tensor of elements T: kNumbers numbers.
template <int kNumbers, class Of>
void launch_sums(CudaCalls calls, const Of& of) {
  auto workspace = [](const CudaCall&) { return kStatisticsBytes; };
  for_independent_calls(calls, workspace, [&](CudaCalls run) {
    for (DType dtype : {DType::f32, DType::bf16, DType::f16})
      for_cuda_type(dtype, [&]<class T>() {
        constexpr int kWide = kFullVector<T>;
        SummedList<decltype(of.template operator()<T>(run.front()))> list;
        for (const CudaCall& call : run) {
          if (call.in[0].dtype != dtype) continue;
          if (list.full()) launch_list<kNumbers, kWide>(list, call.stream);
          auto entry = summed<kWide>(call, of.template operator()<T>(call));
          list.add_blocks(entry, entry.blocks);
        }
        launch_list<kNumbers, kWide>(list, run.front().stream);
      });
  });
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

void launch_tensor_statistics(CudaCalls calls) {
  launch_sums<4>(calls, [&]<class T>(const CudaCall& call) {
    return OfTensor<T>{call.in[0].as<T>(), static_cast<float>(call.attrs.real("zero_below")),
                       static_cast<float>(call.attrs.real("largest"))};
  });
}

void launch_rounding_statistics(CudaCalls calls) {
  launch_sums<3>(calls, [&]<class T>(const CudaCall& call) {
    const Fp8Format& format = fp8_format(call.in[1].dtype);
    return OfRounding<T>{call.in[0].as<T>(), call.in[1].as<uint8_t>(), fp8_bits(format, format.largest)};
  });
}

void launch_change_statistics(CudaCalls calls) {
  launch_sums<3>(calls, [&]<class T>(const CudaCall& call) {
    auto low = [&](size_t i) -> const void* { return call.in.size() > i ? call.in[i].as<std::byte>() : nullptr; };
    return OfChange<T>{call.in[0].as<T>(), call.in[1].as<T>(), low(2), low(3)};
  });
}

}  // namespace

const CudaKernel tensor_statistics{.launch_all = launch_tensor_statistics};
const CudaKernel rounding_statistics{.launch_all = launch_rounding_statistics};
const CudaKernel change_statistics{.launch_all = launch_change_statistics};

}  // namespace sextant::cuda
