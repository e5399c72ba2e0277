// Kernels that only probes use: random operands of any type, streams through memory, and single elements of a GEMM
// computed the slow way.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace sextant {

enum class ProbeType : uint8_t { fp32, bf16, fp16, fp8 };  // tf32 is stored as fp32

// Uniform in [-1, 1), always the same for a seed.
void fill_uniform(void* data, int64_t count, ProbeType type, uint32_t seed, cudaStream_t stream);

void stream_triad(const float* a, const float* b, float* c, int64_t count, cudaStream_t stream);  // c = a + 3·b
void stream_write(float* a, int64_t count, cudaStream_t stream);                                  // a = 7
constexpr int kReadSums = 132 * 16;
void stream_read(const float* a, double* sums, int64_t count, cudaStream_t stream);  // kReadSums parts of Σ a

// For sample i: the element (rows[i], columns[i]) of a·bᵀ, the sum of its terms' sizes, and what c holds there: three
// doubles.
struct Samples {
  const void* a;
  const void* b;
  const void* c;
  ProbeType in, out;
  int64_t n, k;
  const int64_t* rows;
  const int64_t* columns;
  int count;
};
void sampled_elements(const Samples& samples, double* results, cudaStream_t stream);

}  // namespace sextant
