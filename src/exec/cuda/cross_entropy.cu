#include "exec/cuda/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "exec/cuda/check.h"
#include "exec/cuda/reduce.cuh"
#include "exec/cuda/spans.cuh"
#include "exec/cuda/vector.cuh"

namespace sextant::cuda {

namespace {

constexpr int kThreads = 512;
constexpr int kBlocksPerMultiprocessor = 2;
constexpr int kUnroll = 4;            // vectors that a thread has on their way
constexpr float kLogE = 1.44269504f;  // log2(e): exponentials are taken to base 2
constexpr float kLn2 = 0.69314718f;
constexpr float kLowest = -1e30f;  // below every logit, and still finite when scaled

// A sum of exponentials while it is gathered: Σ 2^(kLogE·(x − maximum)).
struct Exponentials {
  float maximum = kLowest, sum = 0;

  __device__ void rescale(float higher) {
    sum *= exp2f(kLogE * (maximum - higher));
    maximum = higher;
  }
  __device__ void add(const Exponentials& other) {
    float higher = fmaxf(maximum, other.maximum);
    sum = sum * exp2f(kLogE * (maximum - higher)) + other.sum * exp2f(kLogE * (other.maximum - higher));
    maximum = higher;
  }
  __device__ float log() const { return maximum + kLn2 * log2f(sum); }
};

__device__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// One row, as the threads of a block share it: thread t has vectors t, t + kThreads, ... The first `cached` of them stay
// in shared memory between the two passes; what does not fit comes from L2 again.
template <class T, int V>
struct Row {
  T* logits;
  int64_t vocabulary, stride;
  Packed<T, V>* cache;
  int64_t cached;

  __device__ int64_t vectors() const { return (vocabulary + V - 1) / V; }

  // Columns from `vocabulary` on count as −inf.
  __device__ void values(const Packed<T, V>& packed, int64_t vector, float (&x)[V]) const {
    unpack(packed, x);
    if ((vector + 1) * V <= vocabulary) return;
#pragma unroll
    for (int i = 0; i < V; ++i)
      if (vector * V + i >= vocabulary) x[i] = -INFINITY;
  }

  __device__ Exponentials gather() const {
    Exponentials all;
    for (int64_t first = threadIdx.x; first < vectors(); first += kUnroll * kThreads) {
      Packed<T, V> packed[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (first + u * kThreads < vectors()) packed[u] = load<V>(logits + (first + u * kThreads) * V);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        int64_t vector = first + u * kThreads;
        if (vector >= vectors()) break;
        if (vector < cached) cache[vector] = packed[u];
        float x[V], highest = all.maximum;
        values(packed[u], vector, x);
#pragma unroll
        for (int i = 0; i < V; ++i) highest = fmaxf(highest, x[i]);
        if (highest > all.maximum) all.rescale(highest);
        float shift = kLogE * all.maximum;
#pragma unroll
        for (int i = 0; i < V; ++i) all.sum += exp2_fast(fmaf(kLogE, x[i], -shift));
      }
    }
    return all;
  }

  // logits = scale·exp(logit − lse), less dloss at the target; 0 in padding.
  __device__ void write_gradient(float scale, float lse, float dloss, int64_t target) const {
    float shift = kLogE * lse;
    for (int64_t first = threadIdx.x; first * V < stride; first += kUnroll * kThreads) {
      Packed<T, V> packed[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        int64_t vector = first + u * kThreads;
        if (vector < vectors()) packed[u] = vector < cached ? cache[vector] : load<V>(logits + vector * V);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        int64_t vector = first + u * kThreads;
        if (vector * V >= stride) break;
        float x[V] = {};
        if (vector < vectors()) {
          values(packed[u], vector, x);
#pragma unroll
          for (int i = 0; i < V; ++i) x[i] = scale * exp2_fast(fmaf(kLogE, x[i], -shift));
          if (target / V == vector && target >= 0) {
#pragma unroll
            for (int i = 0; i < V; ++i)
              if (target % V == i) x[i] -= dloss;
          }
        }
        store_floats(logits + vector * V, x);
      }
    }
  }

  __device__ void clear() const {
    const float zeros[V] = {};
    for (int64_t vector = threadIdx.x; vector * V < stride; vector += kThreads)
      store_floats(logits + vector * V, zeros);
  }
};

// The log-sum-exp over what all threads of the block have gathered, in every thread.
__device__ float log_sum_exp(Exponentials all) {
  constexpr int kWarps = kThreads / 32;
  __shared__ Exponentials warps[kWarps];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    Exponentials other;
    other.maximum = __shfl_xor_sync(kWholeWarp, all.maximum, distance);
    other.sum = __shfl_xor_sync(kWholeWarp, all.sum, distance);
    all.add(other);
  }
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = all;
  __syncthreads();
  Exponentials block = warps[0];
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) block.add(warps[warp]);
  return block.log();
}

struct Loss {
  const int32_t* targets;
  Spans ids;
  float z_loss;
  const float* dloss;
  const float* parts;
  int64_t groups, parts_rows;

  __device__ float whole_lse(int64_t row) const {
    float maximum = -INFINITY, sum = 0;
    for (int64_t g = 0; g < groups; ++g) maximum = fmaxf(maximum, parts[g * parts_rows + row]);
    for (int64_t g = 0; g < groups; ++g) sum += expf(parts[g * parts_rows + row] - maximum);
    return maximum + logf(sum);
  }
};

struct Rows {
  void* logits;
  int64_t vocabulary, stride, cached;  // cached: vectors of a row
  float* numbers;

  template <class T, int V>
  __device__ Row<T, V> row(std::byte* cache) const {
    return {static_cast<T*>(logits) + blockIdx.x * stride, vocabulary, stride,
            reinterpret_cast<Packed<T, V>*>(cache), cached};
  }
};

extern __shared__ uint4 cache_bytes[];

template <class T, int V>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    cross_entropy_kernel(const __grid_constant__ Rows rows, const __grid_constant__ Loss loss) {
  Row<T, V> row = rows.row<T, V>(reinterpret_cast<std::byte*>(cache_bytes));
  int64_t target = loss.targets[blockIdx.x];
  if (target < 0) {
    if (threadIdx.x == 0) rows.numbers[blockIdx.x] = 0;
    if (loss.dloss) row.clear();
    return;
  }
  int64_t here = loss.ids.local_index(target);
  if (here >= rows.vocabulary) here = -1;
  float at_target = here < 0 ? 0 : static_cast<float>(row.logits[here]);
  float lse = loss.parts ? loss.whole_lse(blockIdx.x) : log_sum_exp(row.gather());
  if (threadIdx.x == 0) rows.numbers[blockIdx.x] = here < 0 ? 0 : lse - at_target + loss.z_loss * lse * lse;
  if (!loss.dloss) return;
  __syncthreads();  // thread 0 has read the logit of the target
  float dloss = *loss.dloss;
  row.write_gradient(dloss * (1.0f + 2.0f * loss.z_loss * lse), lse, dloss, here);
}

template <class T, int V>
__global__ void __launch_bounds__(kThreads) log_sum_exp_kernel(const __grid_constant__ Rows rows) {
  float lse = log_sum_exp(rows.row<T, V>(nullptr).gather());
  if (threadIdx.x == 0) rows.numbers[blockIdx.x] = rows.vocabulary == 0 ? -INFINITY : lse;
}

constexpr int kSumThreads = 1024;

__global__ void __launch_bounds__(kSumThreads) sum_numbers_kernel(const float* x, int64_t n, float* out) {
  double sum = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < n; i += kSumThreads) sum += x[i];
  sum = block_sum<kSumThreads>(sum);
  if (threadIdx.x == 0) *out = static_cast<float>(sum);
}

// Shared memory that leaves room for kBlocksPerMultiprocessor blocks on one multiprocessor.
int64_t cache_limit() {
  int device = 0, bytes = 0;
  check_cuda(cudaGetDevice(&device), "which device is in use");
  check_cuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device), "shared memory");
  constexpr int kTaken = 2048;  // by the system and by what the kernel declares itself, per block
  return bytes / kBlocksPerMultiprocessor - kTaken;
}

}  // namespace

void cross_entropy_rows(const LogitRows& rows) {
  if (rows.rows == 0) return;
  Loss loss{rows.targets, spans_of(*rows.w, 0), static_cast<float>(rows.z_loss), rows.dloss,
            rows.parts,   rows.groups,          rows.parts_rows};
  for_cuda_vectors(rows.dtype, rows.stride, [&]<class T, int V>() {
    constexpr auto kVectorBytes = static_cast<int64_t>(sizeof(Packed<T, V>));
    bool two_passes = rows.dloss && !rows.parts;
    int64_t cached = two_passes ? std::min(ceil_div(rows.vocabulary, V), cache_limit() / kVectorBytes) : 0;
    int bytes = static_cast<int>(cached * kVectorBytes);
    check_cuda(cudaFuncSetAttribute(cross_entropy_kernel<T, V>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
               "shared memory of cross-entropy");
    cross_entropy_kernel<T, V><<<static_cast<unsigned>(rows.rows), kThreads, static_cast<size_t>(bytes), rows.stream>>>(
        Rows{rows.logits, rows.vocabulary, rows.stride, cached, rows.losses}, loss);
  });
}

void log_sum_exp_rows(const LogitRows& rows) {
  if (rows.rows == 0) return;
  for_cuda_vectors(rows.dtype, rows.stride, [&]<class T, int V>() {
    log_sum_exp_kernel<T, V><<<static_cast<unsigned>(rows.rows), kThreads, 0, rows.stream>>>(
        Rows{rows.logits, rows.vocabulary, rows.stride, 0, rows.losses});
  });
}

void sum_numbers(const float* x, int64_t n, float* out, cudaStream_t stream) {
  sum_numbers_kernel<<<1, kSumThreads, 0, stream>>>(x, n, out);
}

}  // namespace sextant::cuda
