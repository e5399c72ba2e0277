#include "exec/cuda/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "exec/cuda/attention/async_copy.cuh"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/spans.cuh"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/check.h"

namespace sextant::cuda {

namespace {

constexpr int kThreadsAtOnce = 1024;  // of a multiprocessor: two blocks', or one's where a row needs all its memory
constexpr int kUnroll = 4;            // vectors that a thread works on at once
constexpr int kParts = 4;             // groups of copies, so that the first is worked on while the last is on its way
constexpr float kLogE = 1.44269504f;  // log2(e): exponentials are taken to base 2
constexpr float kLn2 = 0.69314718f;
constexpr float kLowest = -1e30f;  // below every logit, and still finite when scaled

__device__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// A sum of exponentials while it is gathered: Σ 2^(kLogE·(x − maximum)).
struct Exponentials {
  float maximum = kLowest, sum = 0;

  __device__ void rescale(float higher) {
    sum *= exp2_fast(kLogE * (maximum - higher));
    maximum = higher;
  }
  __device__ float log() const { return maximum + kLn2 * log2f(sum); }
};

// One row, as the threads of a block share it: thread t has vectors t, t + kBlock, ... The first `cached` of them are
// copied to shared memory, all at once; what does not fit is read twice, from L2 the second time.
template <class T, int V, int kBlock>
struct Row {
  T* logits;
  int vocabulary, stride;
  Packed<T, V>* cache;
  int cached;

  __device__ int vectors() const { return (vocabulary + V - 1) / V; }
  __device__ int part_size() const { return (cached + kParts * kBlock - 1) / (kParts * kBlock) * kBlock; }

  __device__ void fetch() const {
    for (int part = 0; part < kParts; ++part) {
      int end = min(cached, (part + 1) * part_size());
      for (int vector = part * part_size() + threadIdx.x; vector < end; vector += kBlock)
        copy_async(cache + vector, logits + static_cast<int64_t>(vector) * V);
      close_copies();
    }
  }

  // After fetch.
  __device__ Exponentials gather() const {
    Exponentials all;
    add_range(all, cached, vectors());
    add_parts<0>(all);
    return all;
  }

  // logits = scale·exp(logit − lse), less dloss at the target; 0 in padding.
  __device__ void write_gradient(float scale, float lse, float dloss, int target) const {
    float shift = kLogE * lse;
    for (int first = threadIdx.x; first * V < stride; first += kUnroll * kBlock) {
      Packed<T, V> packed[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (first + u * kBlock < vectors()) packed[u] = vector_at(first + u * kBlock);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        int vector = first + u * kBlock;
        if (vector * V >= stride) break;
        float x[V] = {};
        if (vector < vectors()) {
          values(packed[u], vector, x);
#pragma unroll
          for (int i = 0; i < V; ++i) x[i] = scale * exp2_fast(fmaf(kLogE, x[i], -shift));
          if (int i = target - vector * V; i >= 0 && i < V) take_off(x, i, dloss);
        }
        store_floats(logits + static_cast<int64_t>(vector) * V, x);
      }
    }
  }

  __device__ void clear() const {
    const float zeros[V] = {};
    for (int vector = threadIdx.x; vector * V < stride; vector += kBlock)
      store_floats(logits + static_cast<int64_t>(vector) * V, zeros);
  }

 private:
  __device__ Packed<T, V> vector_at(int vector) const {
    return vector < cached ? cache[vector] : load<V>(logits + static_cast<int64_t>(vector) * V);
  }

  // Columns from `vocabulary` on count as −inf.
  __device__ void values(const Packed<T, V>& packed, int vector, float (&x)[V]) const {
    unpack(packed, x);
    if ((vector + 1) * V <= vocabulary) return;
#pragma unroll
    for (int i = 0; i < V; ++i)
      if (vector * V + i >= vocabulary) x[i] = -INFINITY;
  }

  __device__ static void take_off(float (&x)[V], int at, float amount) {
#pragma unroll
    for (int i = 0; i < V; ++i)
      if (i == at) x[i] -= amount;
  }

  __device__ void add_range(Exponentials& all, int begin, int end) const {
    for (int first = begin + threadIdx.x; first < end; first += kUnroll * kBlock) {
      Packed<T, V> packed[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (first + u * kBlock < end) packed[u] = vector_at(first + u * kBlock);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (first + u * kBlock >= end) break;
        float x[V], highest = all.maximum;
        values(packed[u], first + u * kBlock, x);
#pragma unroll
        for (int i = 0; i < V; ++i) highest = fmaxf(highest, x[i]);
        if (highest > all.maximum) all.rescale(highest);
        float shift = kLogE * all.maximum;
#pragma unroll
        for (int i = 0; i < V; ++i) all.sum += exp2_fast(fmaf(kLogE, x[i], -shift));
      }
    }
  }

  template <int kPart>
  __device__ void add_parts(Exponentials& all) const {
    wait_for_copies<kParts - 1 - kPart>();
    add_range(all, min(cached, kPart * part_size()), min(cached, (kPart + 1) * part_size()));
    if constexpr (kPart + 1 < kParts) add_parts<kPart + 1>(all);
  }
};

// The sum over a warp, in every thread.
__device__ Exponentials over_warp(Exponentials all) {
  float highest = all.maximum;
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    highest = fmaxf(highest, __shfl_xor_sync(kWholeWarp, highest, distance));
  all.rescale(highest);
  all.sum = warp_sum(all.sum);
  return all;
}

// The log-sum-exp over what all threads of the block have gathered, in every thread.
template <int kBlock>
__device__ float log_sum_exp(Exponentials all) {
  constexpr int kWarps = kBlock / 32;
  __shared__ float maxima[kWarps], sums[kWarps];
  all = over_warp(all);
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) maxima[warp] = all.maximum, sums[warp] = all.sum;
  __syncthreads();
  Exponentials one;
  if (lane < kWarps) one = {maxima[lane], sums[lane]};
  return over_warp(one).log();
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
  int64_t vocabulary, stride;
  int cached;  // vectors of a row
  float* numbers;

  template <class T, int V, int kBlock>
  __device__ Row<T, V, kBlock> row(std::byte* cache) const {
    return {static_cast<T*>(logits) + blockIdx.x * stride, static_cast<int>(vocabulary), static_cast<int>(stride),
            reinterpret_cast<Packed<T, V>*>(cache), cached};
  }
};

extern __shared__ uint4 cache_bytes[];

template <class T, int V, int kBlock>
__global__ void __launch_bounds__(kBlock, kThreadsAtOnce / kBlock)
    cross_entropy_kernel(const __grid_constant__ Rows rows, const __grid_constant__ Loss loss) {
  Row<T, V, kBlock> row = rows.row<T, V, kBlock>(reinterpret_cast<std::byte*>(cache_bytes));
  row.fetch();  // first of all, so that what else is read does not cost time
  int64_t target = loss.targets[blockIdx.x];
  float dloss = loss.dloss ? *loss.dloss : 0;
  if (target < 0) {
    wait_for_copies<0>();
    if (threadIdx.x == 0) rows.numbers[blockIdx.x] = 0;
    if (loss.dloss) row.clear();
    return;
  }
  int64_t here = loss.ids.local_index(target);
  if (here >= rows.vocabulary) here = -1;
  float at_target = here < 0 ? 0 : static_cast<float>(row.logits[here]);
  float lse = loss.parts ? loss.whole_lse(blockIdx.x) : log_sum_exp<kBlock>(row.gather());
  if (threadIdx.x == 0) rows.numbers[blockIdx.x] = here < 0 ? 0 : lse - at_target + loss.z_loss * lse * lse;
  if (!loss.dloss) return;
  __syncthreads();  // thread 0 has read the logit of the target
  row.write_gradient(dloss * (1.0f + 2.0f * loss.z_loss * lse), lse, dloss, static_cast<int>(here));
}

constexpr int kThreads = 512;  // where the logits are only read

template <class T, int V>
__global__ void __launch_bounds__(kThreads) log_sum_exp_kernel(const __grid_constant__ Rows rows) {
  float lse = log_sum_exp<kThreads>(rows.row<T, V, kThreads>(nullptr).gather());
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

// Shared memory that a block can have when so many run on one multiprocessor.
int64_t cache_limit(int blocks) {
  int device = 0, bytes = 0;
  check_cuda(cudaGetDevice(&device), "which device is in use");
  check_cuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device), "shared memory");
  constexpr int kTaken = 2048;  // by the system and by what the kernel declares itself, per block
  return bytes / blocks - kTaken;
}

template <class T, int V, int kBlock>
void launch_rows(const LogitRows& rows, int64_t cached) {
  Loss loss{rows.targets, spans_of(*rows.w, 0), static_cast<float>(rows.z_loss), rows.dloss, rows.parts,
            rows.groups,  rows.parts_rows};
  int bytes = static_cast<int>(cached * static_cast<int64_t>(sizeof(Packed<T, V>)));
  auto* kernel = cross_entropy_kernel<T, V, kBlock>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "shared memory of cross-entropy");
  kernel<<<static_cast<unsigned>(rows.rows), kBlock, static_cast<size_t>(bytes), rows.stream>>>(
      Rows{rows.logits, rows.vocabulary, rows.stride, static_cast<int>(cached), rows.losses}, loss);
}

}  // namespace

void cross_entropy_rows(const LogitRows& rows) {
  if (rows.rows == 0) return;
  for_cuda_vectors(rows.dtype, rows.stride, [&]<class T, int V>() {
    constexpr auto kVectorBytes = static_cast<int64_t>(sizeof(Packed<T, V>));
    bool two_passes = rows.dloss && !rows.parts;
    int64_t wanted = two_passes ? ceil_div(rows.vocabulary, V) : 0;
    if (wanted * kVectorBytes <= cache_limit(2))
      launch_rows<T, V, kThreadsAtOnce / 2>(rows, wanted);
    else
      launch_rows<T, V, kThreadsAtOnce>(rows, std::min(wanted, cache_limit(1) / kVectorBytes));
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
