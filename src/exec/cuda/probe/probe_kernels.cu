#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>

#include "exec/cuda/probe/probe_kernels.h"

namespace sextant {

namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 132 * 16;

int blocks_for(int64_t count) {
  return static_cast<int>(std::clamp<int64_t>((count + kThreads - 1) / kThreads, 1, kBlocks));
}

__device__ int64_t first_index() {
  return int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ int64_t index_step() {
  return int64_t{gridDim.x} * blockDim.x;
}

__device__ float uniform(uint64_t i, uint32_t seed) {
  uint64_t x = i * 0x9E3779B97F4A7C15ull + (uint64_t{seed} << 32) + 0x632BE59BD9B4E019ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return static_cast<float>(static_cast<uint32_t>((x ^ (x >> 31)) >> 40)) * 0x1p-23f - 1.0f;
}

template <class T>
__global__ void fill(T* data, int64_t count, uint32_t seed) {
  for (int64_t i = first_index(); i < count; i += index_step()) data[i] = T(uniform(static_cast<uint64_t>(i), seed));
}

__global__ void triad(const float4* a, const float4* b, float4* c, int64_t count) {
  for (int64_t i = first_index(); i < count; i += index_step()) {
    float4 x = a[i], y = b[i];
    c[i] = {x.x + 3 * y.x, x.y + 3 * y.y, x.z + 3 * y.z, x.w + 3 * y.w};
  }
}

__global__ void write(float4* a, int64_t count) {
  for (int64_t i = first_index(); i < count; i += index_step()) a[i] = {7, 7, 7, 7};
}

__global__ void read(const float4* a, double* sums, int64_t count) {
  __shared__ double parts[kThreads];
  // Four loads in flight; sums of a few thousand small whole numbers are exact in f32.
  double sum = 0;
  int64_t step = index_step(), i = first_index();
  for (; i + 3 * step < count; i += 4 * step) {
    float4 x = a[i], y = a[i + step], z = a[i + 2 * step], w = a[i + 3 * step];
    sum += static_cast<double>((x.x + x.y + x.z + x.w) + (y.x + y.y + y.z + y.w) + (z.x + z.y + z.z + z.w) +
                               (w.x + w.y + w.z + w.w));
  }
  for (; i < count; i += step) sum += static_cast<double>(a[i].x + a[i].y + a[i].z + a[i].w);
  parts[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = parts[0];
}

__device__ double element(const void* data, int64_t i, ProbeType type) {
  switch (type) {
    case ProbeType::bf16:
      return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]));
    case ProbeType::fp16:
      return static_cast<double>(__half2float(static_cast<const __half*>(data)[i]));
    case ProbeType::fp8:
      return static_cast<double>(static_cast<float>(static_cast<const __nv_fp8_e4m3*>(data)[i]));
    default:
      return static_cast<double>(static_cast<const float*>(data)[i]);
  }
}

// One block per sample.
__global__ void sample(Samples s, double* results) {
  __shared__ double sums[kThreads], sizes[kThreads];
  int64_t row = s.rows[blockIdx.x], column = s.columns[blockIdx.x];
  double sum = 0, size = 0;
  for (int64_t j = threadIdx.x; j < s.k; j += kThreads) {
    double term = element(s.a, row * s.k + j, s.in) * element(s.b, column * s.k + j, s.in);
    sum += term, size += fabs(term);
  }
  sums[threadIdx.x] = sum, sizes[threadIdx.x] = size;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      sums[threadIdx.x] += sums[threadIdx.x + half], sizes[threadIdx.x] += sizes[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  results[3 * blockIdx.x] = sums[0];
  results[3 * blockIdx.x + 1] = sizes[0];
  results[3 * blockIdx.x + 2] = element(s.c, row * s.n + column, s.out);
}

}  // namespace

void fill_uniform(void* data, int64_t count, ProbeType type, uint32_t seed, cudaStream_t stream) {
  int blocks = blocks_for(count);
  switch (type) {
    case ProbeType::fp32:
      fill<<<blocks, kThreads, 0, stream>>>(static_cast<float*>(data), count, seed);
      break;
    case ProbeType::bf16:
      fill<<<blocks, kThreads, 0, stream>>>(static_cast<__nv_bfloat16*>(data), count, seed);
      break;
    case ProbeType::fp16:
      fill<<<blocks, kThreads, 0, stream>>>(static_cast<__half*>(data), count, seed);
      break;
    case ProbeType::fp8:
      fill<<<blocks, kThreads, 0, stream>>>(static_cast<__nv_fp8_e4m3*>(data), count, seed);
      break;
  }
}

void stream_triad(const float* a, const float* b, float* c, int64_t count, cudaStream_t stream) {
  triad<<<kBlocks, kThreads, 0, stream>>>(reinterpret_cast<const float4*>(a), reinterpret_cast<const float4*>(b),
                                          reinterpret_cast<float4*>(c), count / 4);
}

void stream_write(float* a, int64_t count, cudaStream_t stream) {
  write<<<kBlocks, kThreads, 0, stream>>>(reinterpret_cast<float4*>(a), count / 4);
}

void stream_read(const float* a, double* sums, int64_t count, cudaStream_t stream) {
  static_assert(kReadSums == kBlocks);
  read<<<kBlocks, kThreads, 0, stream>>>(reinterpret_cast<const float4*>(a), sums, count / 4);
}

void sampled_elements(const Samples& samples, double* results, cudaStream_t stream) {
  sample<<<samples.count, kThreads, 0, stream>>>(samples, results);
}

}  // namespace sextant
