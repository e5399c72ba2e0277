#include <algorithm>
#include <span>
#include <type_traits>

#include "base/units.h"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "exec/cuda/runtime/real_type.h"
#include "exec/exact_arithmetic.h"
#include "targets/cuda/update_sizes.h"

namespace sextant::cuda {

namespace {

constexpr int kExactThreads = kSquareThreads;
constexpr int64_t kExactElements = kSquareElements;  // of one block
constexpr int kBinsAtOnce = 448;
static_assert(kExactBinBytes == sizeof(ExactSquares));
static_assert(kExactElements <= ExactSquares::kBetweenCarries);

// Sums are f64; examples of tests come in the other types too.
template <class Body>
void for_exact_type(DType dtype, const Body& body) {
  if (dtype == DType::f64)
    body.template operator()<double>();
  else
    for_cuda_type(dtype, body);
}

template <class X>
__device__ double as_double(X x) {
  if constexpr (std::is_same_v<X, double>)
    return x;
  else
    return static_cast<double>(static_cast<float>(x));
}

template <class Y>
__device__ Y from_double(double x) {
  if constexpr (std::is_same_v<Y, __nv_bfloat16>)
    return __float2bfloat16(static_cast<float>(x));
  else
    return static_cast<Y>(x);
}

unsigned exact_blocks(int64_t count) {
  return static_cast<unsigned>(ceil_div(count, kExactElements));
}

// Calls visit(i) for the elements of this thread: neighbours go to neighbours.
template <class Visit>
__device__ void for_own_elements(int64_t count, const Visit& visit) {
  int64_t first = static_cast<int64_t>(blockIdx.x) * kExactElements;
  int64_t end = min(count, first + kExactElements);
  for (int64_t i = first + threadIdx.x; i < end; i += kExactThreads) visit(i);
}

template <class X, bool kAdds>
__global__ void __launch_bounds__(kExactThreads)
    exact_sum_kernel(const X* __restrict__ x, double* __restrict__ sum, int64_t count, double limit) {
  for_own_elements(count, [&](int64_t i) {
    double term = exact_term(as_double(x[i]), limit);
    sum[i] = kAdds ? sum[i] + term : term;
  });
}

void launch_exact_sum(const CudaCall& call) {
  const Tensor& x = call.in[0];
  if (x.count() == 0) return;
  double* sum = call.out[0].as<double>();
  double limit = exact_limit(call.attrs.integer("terms"));
  for_exact_type(x.dtype, [&]<class X>() {
    if (call.accumulate())
      exact_sum_kernel<X, true>
          <<<exact_blocks(x.count()), kExactThreads, 0, call.stream>>>(x.as<const X>(), sum, x.count(), limit);
    else
      exact_sum_kernel<X, false>
          <<<exact_blocks(x.count()), kExactThreads, 0, call.stream>>>(x.as<const X>(), sum, x.count(), limit);
  });
}

template <class X, class Y>
__global__ void __launch_bounds__(kExactThreads)
    exact_value_kernel(const X* __restrict__ sum, Y* __restrict__ y, int64_t count) {
  for_own_elements(count, [&](int64_t i) { y[i] = from_double<Y>(as_double(sum[i])); });
}

void launch_exact_value(const CudaCall& call) {
  const Tensor &sum = call.in[0], &y = call.out[0];
  if (sum.count() == 0) return;
  for_exact_type(sum.dtype, [&]<class X>() {
    for_exact_type(y.dtype, [&]<class Y>() {
      exact_value_kernel<<<exact_blocks(sum.count()), kExactThreads, 0, call.stream>>>(sum.as<const X>(), y.as<Y>(),
                                                                                       sum.count());
    });
  });
}

// The sum over the block, carried, in its first thread.
__device__ ExactSquares block_bins(const ExactSquares& own) {
  ExactSquares sum;
  sum.high = block_sum<kExactThreads>(own.high);
  __syncthreads();
  sum.middle = block_sum<kExactThreads>(own.middle);
  __syncthreads();
  sum.low = block_sum<kExactThreads>(own.low);
  sum.carry();
  return sum;
}

template <class Value, class X>
__global__ void __launch_bounds__(kExactThreads)
    exact_squares_kernel(const X* __restrict__ x, int64_t count, ExactSquares* partials) {
  ExactSquares own;
  for_own_elements(count,
                   [&](int64_t i) { own.add_square_of(static_cast<double>(static_cast<Value>(as_double(x[i])))); });
  ExactSquares sum = block_bins(own);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kExactThreads)
    add_partial_bins(const ExactSquares* partials, int64_t count, double* bins) {
  ExactSquares own;
  for (int64_t i = threadIdx.x; i < count; i += kExactThreads) {
    own.add(partials[i]);
    own.carry();
  }
  ExactSquares sum = block_bins(own);
  if (threadIdx.x != 0) return;
  bins[0] = sum.high, bins[1] = sum.middle, bins[2] = sum.low;
}

void launch_exact_squares(const CudaCall& call) {
  const Tensor& x = call.in[0];
  auto* partials = reinterpret_cast<ExactSquares*>(call.workspace);
  bool wide = call.attrs.text_or("dtype", "f32") == name_of(DType::f64);
  unsigned blocks = exact_blocks(x.count());
  for_exact_type(x.dtype, [&]<class X>() {
    if (blocks == 0) return;
    if (wide)
      exact_squares_kernel<double><<<blocks, kExactThreads, 0, call.stream>>>(x.as<const X>(), x.count(), partials);
    else
      exact_squares_kernel<float><<<blocks, kExactThreads, 0, call.stream>>>(x.as<const X>(), x.count(), partials);
  });
  add_partial_bins<<<1, kExactThreads, 0, call.stream>>>(partials, blocks, call.out[0].as<double>());
}

// Addresses travel as kernel parameters, so many at a time; between launches the sum rests in the workspace.
struct BinsList {
  int count;
  const void* at[kBinsAtOnce];
};

template <class X>
__device__ ExactSquares bins_at(const void* at) {
  const X* x = static_cast<const X*>(at);
  ExactSquares bins;
  bins.high = as_double(x[0]), bins.middle = as_double(x[1]), bins.low = as_double(x[2]);
  return bins;
}

template <class X>
__global__ void __launch_bounds__(kExactThreads)
    add_bins_kernel(const __grid_constant__ BinsList list, ExactSquares* running, bool first, X* total) {
  ExactSquares own;
  for (int i = static_cast<int>(threadIdx.x); i < list.count; i += kExactThreads) {
    own.add(bins_at<X>(list.at[i]));
    own.carry();
  }
  ExactSquares sum = block_bins(own);
  if (threadIdx.x != 0) return;
  if (!first) sum.add(*running);
  sum.carry();
  *running = sum;
  total[0] = from_double<X>(sum.high), total[1] = from_double<X>(sum.middle), total[2] = from_double<X>(sum.low);
}

void launch_add_exact_squares(const CudaCall& call) {
  std::span<const Tensor> left = call.in;
  auto* running = reinterpret_cast<ExactSquares*>(call.workspace);
  bool first = true;
  do {
    BinsList list{};
    list.count = static_cast<int>(std::min<size_t>(left.size(), kBinsAtOnce));
    for (int i = 0; i < list.count; ++i) list.at[i] = left[static_cast<size_t>(i)].data;
    left = left.subspan(static_cast<size_t>(list.count));
    for_exact_type(call.out[0].dtype, [&]<class X>() {
      add_bins_kernel<X><<<1, kExactThreads, 0, call.stream>>>(list, running, first, call.out[0].as<X>());
    });
    first = false;
  } while (!left.empty());
}

template <class X, class Y>
__global__ void exact_total_kernel(const X* bins, Y* y) {
  *y = from_double<Y>(bins_at<X>(bins).total());
}

void launch_exact_total(const CudaCall& call) {
  for_exact_type(call.in[0].dtype, [&]<class X>() {
    for_exact_type(call.out[0].dtype, [&]<class Y>() {
      exact_total_kernel<<<1, 1, 0, call.stream>>>(call.in[0].as<const X>(), call.out[0].as<Y>());
    });
  });
}

}  // namespace

const CudaKernel exact_sum{.launch = launch_exact_sum};
const CudaKernel exact_value{.launch = launch_exact_value};
const CudaKernel exact_squares{.launch = launch_exact_squares};
const CudaKernel add_exact_squares{.launch = launch_add_exact_squares};
const CudaKernel exact_total{.launch = launch_exact_total};

}  // namespace sextant::cuda
