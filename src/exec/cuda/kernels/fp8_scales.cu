#include "exec/cuda/kernels/fp8_scales.h"

#include "base/units.h"

namespace sextant::cuda {

namespace {

constexpr int kScaleSide = 32, kScaleRows = 8;  // of a tile, and of the threads that turn it
constexpr int kScaleThreads = 256;

__global__ void __launch_bounds__(kScaleSide* kScaleRows)
    transpose_scales_kernel(const float* from, float* to, int64_t rows, int64_t columns, int64_t across) {
  __shared__ float tile[kScaleSide][kScaleSide + 1];
  int64_t top = blockIdx.x / across * kScaleSide, left = blockIdx.x % across * kScaleSide;
#pragma unroll
  for (int i = threadIdx.y; i < kScaleSide; i += kScaleRows)
    if (top + i < rows && left + threadIdx.x < columns)
      tile[i][threadIdx.x] = from[(top + i) * columns + left + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = threadIdx.y; i < kScaleSide; i += kScaleRows)
    if (left + i < columns && top + threadIdx.x < rows)
      to[(left + i) * rows + top + threadIdx.x] = tile[threadIdx.x][i];
}

__global__ void __launch_bounds__(kScaleThreads)
    pad_scales_kernel(const float* from, float* to, int64_t rows, int64_t columns, int64_t stride) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kScaleThreads + threadIdx.x;
  if (i >= rows * stride) return;
  int64_t row = i / stride, column = i % stride;
  to[i] = column < columns ? from[row * columns + column] : 0.0f;
}

}  // namespace

void transpose_scales(const float* from, float* to, int64_t rows, int64_t columns, cudaStream_t stream) {
  int64_t across = ceil_div(columns, kScaleSide), blocks = across * ceil_div(rows, kScaleSide);
  if (blocks == 0) return;
  transpose_scales_kernel<<<static_cast<unsigned>(blocks), dim3(kScaleSide, kScaleRows), 0, stream>>>(from, to, rows,
                                                                                                      columns, across);
}

void pad_scales(const float* from, float* to, int64_t rows, int64_t columns, int64_t stride, cudaStream_t stream) {
  if (rows * stride == 0) return;
  pad_scales_kernel<<<static_cast<unsigned>(ceil_div(rows * stride, kScaleThreads)), kScaleThreads, 0, stream>>>(
      from, to, rows, columns, stride);
}

}  // namespace sextant::cuda
