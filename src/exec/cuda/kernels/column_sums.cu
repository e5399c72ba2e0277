#include "exec/cuda/kernels/column_sums.h"

#include <algorithm>

#include "base/units.h"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/vector.cuh"

namespace sextant::cuda {

namespace {

constexpr int kLanes = kColumnLanes;
constexpr int kLines = 8;   // rows that a block reads side by side
constexpr int kAtOnce = 6;  // rows that a thread has on their way

struct Slices {
  int64_t rows, width, rows_in_slice;
};

template <class T, int V>
__global__ void __launch_bounds__(kLanes* kLines, kColumnBlocksAtOnce)
    sum_slices(const T* x, float* partials, Slices slices) {
  int lane = threadIdx.x % kLanes, line = threadIdx.x / kLanes;
  int64_t column = (static_cast<int64_t>(blockIdx.x) * kLanes + lane) * V;
  int64_t begin = blockIdx.y * slices.rows_in_slice + line;
  int64_t end = min(slices.rows, (blockIdx.y + 1) * slices.rows_in_slice);
  int left = column < slices.width ? static_cast<int>(end - begin) : 0;  // rows to the end
  const T* from = x + begin * slices.width + column;
  int64_t step = kLines * slices.width;
  float sum[V] = {};
  for (; left > 0; left -= kAtOnce * kLines, from += kAtOnce * step) {
    Packed<T, V> rows[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (k * kLines < left) rows[k] = load<V>(from + k * step);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (k * kLines >= left) break;
      float value[V];
      unpack(rows[k], value);
#pragma unroll
      for (int i = 0; i < V; ++i) sum[i] += value[i];
    }
  }
  __shared__ float lines[kLines][V][kLanes];
#pragma unroll
  for (int i = 0; i < V; ++i) lines[line][i][lane] = sum[i];
  __syncthreads();
  if (line != 0 || column >= slices.width) return;
#pragma unroll
  for (int other = 1; other < kLines; ++other)
#pragma unroll
    for (int i = 0; i < V; ++i) sum[i] += lines[other][i][lane];
  store_floats(partials + blockIdx.y * slices.width + column, sum);
}

// A block sums kLanes columns of one set: thread (line, lane) every 32nd slice of a column, then a warp all that the
// lines have of one column.
__global__ void __launch_bounds__(kLanes* kLanes) sum_partials(const __grid_constant__ PartialSums sums) {
  int lane = threadIdx.x % kLanes, line = threadIdx.x / kLanes;
  int64_t first_column = static_cast<int64_t>(blockIdx.x) * kLanes, column = first_column + lane;
  const float* partials = sums.partials + blockIdx.y * sums.slices * sums.width + column;
  float sum = 0;
  if (column < sums.width) {
    for (int64_t first = line; first < sums.slices; first += kAtOnce * kLanes) {
      float values[kAtOnce] = {};
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (first + k * kLanes < sums.slices) values[k] = partials[(first + k * kLanes) * sums.width];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) sum += values[k];
    }
  }
  __shared__ float lines[kLanes][kLanes + 1];
  lines[line][lane] = sum;
  __syncthreads();
  sum = warp_sum(lines[lane][line]);
  if (lane != 0 || first_column + line >= sums.width) return;
  float& out = sums.out[blockIdx.y][first_column + line];
  out = sums.write == ColumnSums::Write::add ? out + sum : sum;
}

}  // namespace

void sum_columns(const ColumnSums& sums) {
  if (sums.width == 0) return;
  int64_t slices = column_slices(sums.rows, sums.width);
  auto* partials = reinterpret_cast<float*>(sums.workspace);
  for_cuda_vectors(sums.dtype, sums.width, [&]<class T, int V>() {
    dim3 grid(static_cast<unsigned>(ceil_div(sums.width, kLanes * V)), static_cast<unsigned>(slices));
    sum_slices<T, V><<<grid, kLanes * kLines, 0, sums.stream>>>(
        static_cast<const T*>(sums.x), partials, Slices{sums.rows, sums.width, ceil_div(sums.rows, slices)});
  });
  add_partials({partials, slices, sums.width, {sums.out}, sums.write, sums.stream});
}

void add_partials(const PartialSums& sums) {
  if (sums.width == 0) return;
  dim3 grid(static_cast<unsigned>(ceil_div(sums.width, kLanes)), sums.out[1] ? 2 : 1);
  sum_partials<<<grid, kLanes * kLanes, 0, sums.stream>>>(sums);
}

}  // namespace sextant::cuda
