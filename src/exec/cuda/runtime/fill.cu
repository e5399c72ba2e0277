#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "exec/cuda/runtime/fill.h"
#include "exec/cuda/runtime/philox.cuh"

namespace sextant {

namespace {

constexpr int kThreads = 256;
constexpr int kMostBlocks = 8192;

int blocks_for(int64_t count) {
  return static_cast<int>(std::min<int64_t>((count + kThreads - 1) / kThreads, kMostBlocks));
}

// base/rng.cpp, on the device: the same numbers to the last rounding of log and cos.
__device__ double normal(uint64_t key, uint64_t stream, uint64_t index) {
  uint4 words = cuda::philox(key, stream, index);
  double u = (static_cast<double>(words.x) + 0.5) * 0x1p-32, v = static_cast<double>(words.y) * 0x1p-32;
  return sqrt(-2.0 * log(u)) * cospi(2.0 * v);
}

template <class T>
__device__ T part_of(float x);
template <>
__device__ float part_of<float>(float x) {
  return x;
}
template <>
__device__ __nv_bfloat16 part_of<__nv_bfloat16>(float x) {
  uint32_t bits = __float_as_uint(x);
  return __ushort_as_bfloat16(static_cast<uint16_t>((bits >> 16) + ((bits >> 15) & 1)));
}
template <>
__device__ __half part_of<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ __nv_fp8_e4m3 part_of<__nv_fp8_e4m3>(float x) {
  return __nv_fp8_e4m3(x);
}
template <>
__device__ __nv_fp8_e5m2 part_of<__nv_fp8_e5m2>(float x) {
  return __nv_fp8_e5m2(x);
}
template <>
__device__ uint16_t part_of<uint16_t>(float x) {
  return static_cast<uint16_t>(__float_as_uint(x));
}

struct Piece {
  Init::Kind kind;
  double std;
  uint64_t key, stream;
  int64_t first, whole_width, rows, columns, at, stride;
};

template <class T>
__global__ void draw(T* data, Piece p) {
  int64_t count = p.rows * p.columns, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    int64_t row = i / p.columns, column = i % p.columns;
    float x = p.kind == Init::Kind::ones ? 1.0f : 0.0f;
    if (p.kind == Init::Kind::normal)
      x = static_cast<float>(normal(p.key, p.stream, static_cast<uint64_t>(p.first + row * p.whole_width + column)) *
                             p.std);
    data[p.at + row * p.stride + column] = part_of<T>(x);
  }
}

}  // namespace

void fill_drawn(void* data, DType dtype, const DrawnPiece& piece, cudaStream_t stream) {
  Piece p{piece.init.kind, piece.init.std, piece.random.key(), piece.random.stream(), piece.first, piece.whole_width,
          piece.rows,      piece.columns,  piece.at,           piece.stride};
  if (p.rows * p.columns == 0) return;
  int blocks = blocks_for(p.rows * p.columns);
  if (dtype == DType::bf16)
    draw<<<blocks, kThreads, 0, stream>>>(static_cast<__nv_bfloat16*>(data), p);
  else if (dtype == DType::f16)
    draw<<<blocks, kThreads, 0, stream>>>(static_cast<__half*>(data), p);
  else if (dtype == DType::e4m3)
    draw<<<blocks, kThreads, 0, stream>>>(static_cast<__nv_fp8_e4m3*>(data), p);
  else if (dtype == DType::e5m2)
    draw<<<blocks, kThreads, 0, stream>>>(static_cast<__nv_fp8_e5m2*>(data), p);
  else if (dtype == DType::u16)
    draw<<<blocks, kThreads, 0, stream>>>(static_cast<uint16_t*>(data), p);
  else
    draw<<<blocks, kThreads, 0, stream>>>(static_cast<float*>(data), p);
}

void fill_random(void* data, int64_t count, DType dtype, cudaStream_t stream) {
  fill_drawn(data, dtype, {{Init::Kind::normal, 1.0}, Random(1, "operands"), 0, count, 1, count, 0, count}, stream);
}

}  // namespace sextant
