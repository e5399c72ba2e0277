#include "exec/cuda/column_sums.h"

#include <algorithm>

#include "base/units.h"
#include "exec/cuda/vector.cuh"

namespace sextant::cuda {

namespace {

constexpr int kLanes = 32;       // threads side by side, V columns each
constexpr int kRowsAtOnce = 8;   // of a block
constexpr int kUnroll = 4;       // rows that a thread has on their way
constexpr int64_t kBlocks = 1056;  // about what fills a large GPU
constexpr int64_t kLeastRows = 64;

// Slices of rows, the same for every element type and every alignment.
int64_t slices_of(int64_t rows, int64_t width) {
  int64_t tiles = ceil_div(std::max<int64_t>(1, width), kLanes * 8);
  return std::clamp<int64_t>(kBlocks / tiles, 1, std::max<int64_t>(1, ceil_div(rows, kLeastRows)));
}

struct Slices {
  int64_t rows, width, rows_in_slice;
};

template <class T, int V>
__global__ void __launch_bounds__(kLanes* kRowsAtOnce) sum_slices(const T* x, float* partials, Slices slices) {
  int lane = threadIdx.x % kLanes, line = threadIdx.x / kLanes;
  int64_t column = (static_cast<int64_t>(blockIdx.x) * kLanes + lane) * V;
  int64_t begin = blockIdx.y * slices.rows_in_slice, end = min(slices.rows, begin + slices.rows_in_slice);
  float sum[V] = {};
  if (column < slices.width) {
#pragma unroll kUnroll
    for (int64_t row = begin + line; row < end; row += kRowsAtOnce) {
      float value[V];
      load_floats(x + row * slices.width + column, value);
#pragma unroll
      for (int i = 0; i < V; ++i) sum[i] += value[i];
    }
  }
  __shared__ float lines[kRowsAtOnce][V][kLanes];
#pragma unroll
  for (int i = 0; i < V; ++i) lines[line][i][lane] = sum[i];
  __syncthreads();
  if (line != 0 || column >= slices.width) return;
#pragma unroll
  for (int other = 1; other < kRowsAtOnce; ++other)
#pragma unroll
    for (int i = 0; i < V; ++i) sum[i] += lines[other][i][lane];
  store_floats(partials + blockIdx.y * slices.width + column, sum);
}

constexpr int kSumLines = 32;

__global__ void __launch_bounds__(kLanes* kSumLines) sum_partials(PartialSums sums) {
  int lane = threadIdx.x % kLanes, line = threadIdx.x / kLanes;
  int64_t column = static_cast<int64_t>(blockIdx.x) * kLanes + lane;
  float sum = 0;
  if (column < sums.width) {
#pragma unroll 8
    for (int64_t slice = line; slice < sums.slices; slice += kSumLines)
      sum += sums.partials[slice * sums.width + column];
  }
  __shared__ float lines[kSumLines][kLanes];
  lines[line][lane] = sum;
  __syncthreads();
  if (line != 0 || column >= sums.width) return;
  for (int other = 1; other < kSumLines; ++other) sum += lines[other][lane];
  sums.out[column] = sums.write == ColumnSums::Write::add ? sums.out[column] + sum : sum;
}

}  // namespace

int64_t column_sums_workspace(int64_t rows, int64_t width) {
  return slices_of(rows, width) * width * static_cast<int64_t>(sizeof(float));
}

void sum_columns(const ColumnSums& sums) {
  if (sums.width == 0) return;
  int64_t slices = slices_of(sums.rows, sums.width);
  auto* partials = reinterpret_cast<float*>(sums.workspace);
  for_cuda_vectors(sums.dtype, sums.width, [&]<class T, int V>() {
    dim3 grid(static_cast<unsigned>(ceil_div(sums.width, kLanes * V)), static_cast<unsigned>(slices));
    sum_slices<T, V><<<grid, kLanes * kRowsAtOnce, 0, sums.stream>>>(
        static_cast<const T*>(sums.x), partials, Slices{sums.rows, sums.width, ceil_div(sums.rows, slices)});
  });
  add_partials({partials, slices, sums.width, sums.out, sums.write, sums.stream});
}

void add_partials(const PartialSums& sums) {
  if (sums.width == 0) return;
  sum_partials<<<static_cast<unsigned>(ceil_div(sums.width, kLanes)), kLanes * kSumLines, 0, sums.stream>>>(sums);
}

}  // namespace sextant::cuda
