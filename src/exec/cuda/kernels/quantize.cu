// Into fp8, to the bit as the CPU does. Where sizes are multiples of 16, as in every run (passes/quantize), by tiles in
// one pass over memory (fp8_tile.cuh); other sizes by plain kernels.
#include <algorithm>

#include "base/units.h"
#include "exec/cuda/kernels/amax.cuh"
#include "exec/cuda/kernels/fp8_tile.cuh"

namespace sextant::cuda {

namespace {

// Elements that share a scale: the whole value, 128 elements along a row, or 128 × 128 elements.
enum class Scaled : uint8_t { whole, tiles, blocks };

// A value as its sequences of rows, and where its codes go.
template <class T>
struct Quantized {
  const T* x;
  const float* amax;  // of the whole; null otherwise
  int64_t sequences, rows, columns;
  uint8_t *q, *qt;  // qt: null where the transpose is not wanted
  float *scales, *turned_scales;

  __host__ __device__ int64_t across() const { return (columns + kCodeTile - 1) / kCodeTile; }
  __host__ __device__ int64_t down() const { return (rows + kCodeTile - 1) / kCodeTile; }
};

// A thread's numbers, in patches one below the other; zeros beyond the edge.
template <class T>
using Patches = Packed<T, kPatchColumns>[kPatchesOfThread][kPatchRows];

// The scale of each of the thread's rows in the tile; the lanes of half a warp share a row.
template <Fp8Kind kKind, class T>
__device__ void find_row_scales(const Patches<T>& x, float (&scales)[kPatchesOfThread][kPatchRows]) {
#pragma unroll
  for (int p = 0; p < kPatchesOfThread; ++p)
#pragma unroll
    for (int r = 0; r < kPatchRows; ++r) {
      float values[kPatchColumns];
      unpack(x[p][r], values);
      uint32_t most = largest_bits(values);
#pragma unroll
      for (int distance = kPatchesAcross / 2; distance > 0; distance /= 2)
        most = max(most, __shfl_xor_sync(kWholeWarp, most, distance));
      scales[p][r] = scale_for<kKind>(most);
    }
}

// The scale of each column of the tile, in shared memory, after a barrier.
template <Fp8Kind kKind, class T>
__device__ void find_column_scales(const Patches<T>& x, float (&scales)[kCodeTile]) {
  constexpr int kWarps = kCodeThreads / 32;
  __shared__ uint32_t of_warp[kWarps][kCodeTile];
  uint32_t most[kPatchColumns] = {};
#pragma unroll
  for (int p = 0; p < kPatchesOfThread; ++p)
#pragma unroll
    for (int r = 0; r < kPatchRows; ++r) {
      float values[kPatchColumns];
      unpack(x[p][r], values);
#pragma unroll
      for (int c = 0; c < kPatchColumns; ++c) most[c] = max(most[c], magnitude_bits(values[c]));
    }
  int column = threadIdx.x % kPatchesAcross * kPatchColumns;
#pragma unroll
  for (int c = 0; c < kPatchColumns; ++c) {
    most[c] = max(most[c], __shfl_xor_sync(kWholeWarp, most[c], kPatchesAcross));
    if (threadIdx.x % 32 < kPatchesAcross) of_warp[threadIdx.x / 32][column + c] = most[c];
  }
  __syncthreads();
  if (threadIdx.x < kCodeTile) {
    uint32_t all = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) all = max(all, of_warp[warp][threadIdx.x]);
    scales[threadIdx.x] = scale_for<kKind>(all);
  }
  __syncthreads();
}

// The scale of the whole tile, in every thread.
template <Fp8Kind kKind, class T>
__device__ float find_tile_scale(const Patches<T>& x) {
  constexpr int kWarps = kCodeThreads / 32;
  __shared__ uint32_t of_warp[kWarps];
  uint32_t most = 0;
#pragma unroll
  for (int p = 0; p < kPatchesOfThread; ++p)
#pragma unroll
    for (int r = 0; r < kPatchRows; ++r) {
      float values[kPatchColumns];
      unpack(x[p][r], values);
      most = max(most, largest_bits(values));
    }
  most = __reduce_max_sync(kWholeWarp, most);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = most;
  __syncthreads();
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) most = max(most, of_warp[warp]);
  return scale_for<kKind>(most);
}

template <class T, Fp8Kind kKind, Scaled kScaled, bool kTurned>
__global__ void __launch_bounds__(kCodeThreads) quantize_kernel(const __grid_constant__ Quantized<T> m) {
  __shared__ TurnedTile turned;
  __shared__ float column_scales[kCodeTile];
  int64_t across = m.across(), down = m.down();
  int64_t tile_column = blockIdx.x % across, tile_row = blockIdx.x / across % down,
          sequence = blockIdx.x / across / down;
  int64_t first_row = tile_row * kCodeTile, first_column = tile_column * kCodeTile, before = sequence * m.rows;
  int patch = threadIdx.x / kPatchesAcross, in_tile = threadIdx.x % kPatchesAcross * kPatchColumns;
  int64_t column = first_column + in_tile;
  auto row_of = [&](int p, int r) { return first_row + (patch + p * kPatchesDown) * kPatchRows + r; };
  auto inside = [&](int p, int r) { return column < m.columns && row_of(p, r) < m.rows; };

  Patches<T> x = {};
#pragma unroll
  for (int p = 0; p < kPatchesOfThread; ++p)
#pragma unroll
    for (int r = 0; r < kPatchRows; ++r)
      if (inside(p, r)) x[p][r] = load<kPatchColumns>(m.x + (before + row_of(p, r)) * m.columns + column);

  float row_scales[kPatchesOfThread][kPatchRows], one_scale = 1;
  if constexpr (kScaled == Scaled::tiles) find_row_scales<kKind, T>(x, row_scales);
  if constexpr (kScaled == Scaled::whole) one_scale = scale_for<kKind>(__float_as_uint(*m.amax));
  if constexpr (kScaled == Scaled::blocks) one_scale = find_tile_scale<kKind, T>(x);

#pragma unroll
  for (int p = 0; p < kPatchesOfThread; ++p) {
    uint32_t left[kPatchRows], right[kPatchRows];
#pragma unroll
    for (int r = 0; r < kPatchRows; ++r) {
      float values[kPatchColumns];
      unpack(x[p][r], values);
      float scale = kScaled == Scaled::tiles ? row_scales[p][r] : one_scale;
      left[r] = four_codes<kKind>(values, &scale, 0);
      right[r] = four_codes<kKind>(values + 4, &scale, 0);
      if (!inside(p, r)) continue;
      int64_t row = before + row_of(p, r);
      *reinterpret_cast<uint2*>(m.q + row * m.columns + column) = {left[r], right[r]};
      if (kScaled == Scaled::tiles && in_tile == 0) m.scales[row * across + tile_column] = 1 / scale;
    }
    if constexpr (kTurned && kScaled != Scaled::tiles) turned.put_patch(in_tile, patch + p * kPatchesDown, left, right);
  }
  if (kScaled == Scaled::whole && blockIdx.x == 0 && threadIdx.x == 0) *m.scales = 1 / one_scale;
  if (kScaled == Scaled::blocks && threadIdx.x == 0) {
    m.scales[tile_row * across + tile_column] = 1 / one_scale;
    if (kTurned) m.turned_scales[tile_column * down + tile_row] = 1 / one_scale;
  }
  if constexpr (!kTurned) return;

  if constexpr (kScaled == Scaled::tiles) {
    find_column_scales<kKind, T>(x, column_scales);
    if (int64_t c = first_column + threadIdx.x; threadIdx.x < kCodeTile && c < m.columns)
      m.turned_scales[(c * m.sequences + sequence) * down + tile_row] = 1 / column_scales[threadIdx.x];
#pragma unroll
    for (int p = 0; p < kPatchesOfThread; ++p) {
      uint32_t left[kPatchRows], right[kPatchRows];
#pragma unroll
      for (int r = 0; r < kPatchRows; ++r) {
        float values[kPatchColumns];
        unpack(x[p][r], values);
        left[r] = four_codes<kKind>(values, column_scales + in_tile, 1);
        right[r] = four_codes<kKind>(values + 4, column_scales + in_tile + 4, 1);
      }
      turned.put_patch(in_tile, patch + p * kPatchesDown, left, right);
    }
  }
  __syncthreads();
  constexpr int kChunks = kCodeTile / 16;  // of a column
  int64_t all_rows = m.sequences * m.rows;
#pragma unroll
  for (int item = threadIdx.x; item < kCodeTile * kChunks; item += kCodeThreads) {
    int c = item / kChunks, chunk = item % kChunks;
    int64_t row = first_row + chunk * 16;
    if (first_column + c < m.columns && row < m.rows)
      *reinterpret_cast<uint4*>(m.qt + (first_column + c) * all_rows + before + row) = turned.get(c, chunk);
  }
}

// Sizes that are no multiples of 16, or tiles of another size than 128.

template <class T, Fp8Kind kKind>
__global__ void __launch_bounds__(kCodeThreads) quantize_whole_kernel(const __grid_constant__ Quantized<T> m) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kCodeThreads + threadIdx.x;
  float scale = scale_for<kKind>(__float_as_uint(*m.amax));
  if (i == 0) *m.scales = 1 / scale;
  if (i >= m.rows * m.columns) return;
  uint8_t code = __nv_cvt_float_to_fp8(scale * static_cast<float>(m.x[i]), __NV_SATFINITE, kKind);
  m.q[i] = code;
  if (m.qt) m.qt[i % m.columns * m.rows + i / m.columns] = code;
}

// Element (a, b, c) stands at x[a·strides[0] + b·strides[1] + c·strides[2]]; tiles lie along c. A thread has a tile.
template <class T>
struct Strips {
  const T* x;
  int64_t sizes[3], strides[3];
  int64_t tile;
  uint8_t* q;
  float* scales;

  __host__ __device__ int64_t tiles() const { return (sizes[2] + tile - 1) / tile; }
};

template <class T, Fp8Kind kKind>
__global__ void __launch_bounds__(kCodeThreads) quantize_strips_kernel(const __grid_constant__ Strips<T> s) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kCodeThreads + threadIdx.x, tiles = s.tiles();
  if (i >= s.sizes[0] * s.sizes[1] * tiles) return;
  int64_t strip = i / tiles, begin = i % tiles * s.tile, end = min(s.sizes[2], begin + s.tile);
  const T* x = s.x + strip / s.sizes[1] * s.strides[0] + strip % s.sizes[1] * s.strides[1];
  uint32_t most = 0;
  for (int64_t c = begin; c < end; ++c) most = max(most, magnitude_bits(static_cast<float>(x[c * s.strides[2]])));
  float scale = scale_for<kKind>(most);
  s.scales[i] = 1 / scale;
  for (int64_t c = begin; c < end; ++c)
    s.q[strip * s.sizes[2] + c] =
        __nv_cvt_float_to_fp8(scale * static_cast<float>(x[c * s.strides[2]]), __NV_SATFINITE, kKind);
}

// A thread has a block.
template <class T, Fp8Kind kKind>
__global__ void __launch_bounds__(kCodeThreads)
    quantize_blocks_kernel(const __grid_constant__ Quantized<T> m, int64_t tile) {
  int64_t down = (m.rows + tile - 1) / tile, across = (m.columns + tile - 1) / tile;
  int64_t i = static_cast<int64_t>(blockIdx.x) * kCodeThreads + threadIdx.x;
  if (i >= down * across) return;
  int64_t top = i / across * tile, left = i % across * tile;
  int64_t bottom = min(m.rows, top + tile), right = min(m.columns, left + tile);
  uint32_t most = 0;
  for (int64_t row = top; row < bottom; ++row)
    for (int64_t column = left; column < right; ++column)
      most = max(most, magnitude_bits(static_cast<float>(m.x[row * m.columns + column])));
  float scale = scale_for<kKind>(most);
  m.scales[i] = 1 / scale;
  if (m.qt) m.turned_scales[i % across * down + i / across] = 1 / scale;
  for (int64_t row = top; row < bottom; ++row)
    for (int64_t column = left; column < right; ++column) {
      float x = static_cast<float>(m.x[row * m.columns + column]);
      uint8_t code = __nv_cvt_float_to_fp8(scale * x, __NV_SATFINITE, kKind);
      m.q[row * m.columns + column] = code;
      if (m.qt) m.qt[column * m.rows + row] = code;
    }
}

unsigned blocks_of(int64_t threads) {
  return static_cast<unsigned>(ceil_div(threads, kCodeThreads));
}

// Calls body.template operator()<T, kKind>() for the type that is read and the format that is written.
template <class Body>
void for_formats(const CudaCall& call, const Body& body) {
  for_cuda_type(call.in[0].dtype, [&]<class T>() {
    if (call.out[0].dtype == DType::e5m2)
      body.template operator()<T, __NV_E5M2>();
    else
      body.template operator()<T, __NV_E4M3>();
  });
}

template <class T>
bool in_tiles(const Quantized<T>& m, int64_t tile) {
  return tile == kCodeTile && m.rows % 16 == 0 && m.columns % 16 == 0;
}

template <class T, Fp8Kind kKind, Scaled kScaled>
void launch_tiles(const Quantized<T>& m, cudaStream_t stream) {
  auto blocks = static_cast<unsigned>(m.across() * m.down() * m.sequences);
  if (m.qt)
    quantize_kernel<T, kKind, kScaled, true><<<blocks, kCodeThreads, 0, stream>>>(m);
  else
    quantize_kernel<T, kKind, kScaled, false><<<blocks, kCodeThreads, 0, stream>>>(m);
}

void run_with_amax(const CudaCall& call) {
  for_formats(call, [&]<class T, Fp8Kind kKind>() {
    Quantized<T> m{.x = call.in[0].as<T>(),
                   .amax = call.in[1].as<float>(),
                   .sequences = 1,
                   .rows = call.in[0].shape.rows(),
                   .columns = call.in[0].shape.last(),
                   .q = call.out[0].as<uint8_t>(),
                   .qt = call.out.size() > 2 ? call.out[2].as<uint8_t>() : nullptr,
                   .scales = call.out[1].as<float>(),
                   .turned_scales = nullptr};
    if (m.rows * m.columns > 0 && in_tiles(m, kCodeTile)) return launch_tiles<T, kKind, Scaled::whole>(m, call.stream);
    unsigned blocks = std::max(1u, blocks_of(m.rows * m.columns));  // the scale is written in any case
    quantize_whole_kernel<T, kKind><<<blocks, kCodeThreads, 0, call.stream>>>(m);
  });
}

template <class T>
Quantized<T> with_own_scales(const CudaCall& call, int64_t sequences, int64_t rows) {
  bool turned = call.out.size() > 2;
  return {.x = call.in[0].as<T>(),
          .amax = nullptr,
          .sequences = sequences,
          .rows = rows,
          .columns = call.in[0].shape.last(),
          .q = call.out[0].as<uint8_t>(),
          .qt = turned ? call.out[2].as<uint8_t>() : nullptr,
          .scales = call.out[1].as<float>(),
          .turned_scales = turned ? call.out[3].as<float>() : nullptr};
}

void run_tiles(const CudaCall& call) {
  if (call.in[0].count() == 0) return;
  const LocalShape& shape = call.in[0].shape;
  int64_t tile = call.attrs.integer("tile"), width = shape[2];
  for_formats(call, [&]<class T, Fp8Kind kKind>() {
    auto m = with_own_scales<T>(call, shape[0], shape[1]);
    if (in_tiles(m, tile)) return launch_tiles<T, kKind, Scaled::tiles>(m, call.stream);
    auto launch = [&](const Strips<T>& s) {
      quantize_strips_kernel<T, kKind>
          <<<blocks_of(s.sizes[0] * s.sizes[1] * s.tiles()), kCodeThreads, 0, call.stream>>>(s);
    };
    launch({m.x, {shape.rows(), 1, width}, {width, 0, 1}, tile, m.q, m.scales});
    if (m.qt) launch({m.x, {width, shape[0], shape[1]}, {1, shape[1] * width, width}, tile, m.qt, m.turned_scales});
  });
}

void run_blocks(const CudaCall& call) {
  if (call.in[0].count() == 0) return;
  int64_t tile = call.attrs.integer("tile");
  for_formats(call, [&]<class T, Fp8Kind kKind>() {
    auto m = with_own_scales<T>(call, 1, call.in[0].shape[0]);
    if (in_tiles(m, tile)) return launch_tiles<T, kKind, Scaled::blocks>(m, call.stream);
    int64_t blocks = ceil_div(m.rows, tile) * ceil_div(m.columns, tile);
    quantize_blocks_kernel<T, kKind><<<blocks_of(blocks), kCodeThreads, 0, call.stream>>>(m, tile);
  });
}

}  // namespace

const CudaKernel quantize_activation{.launch = run_with_amax};
const CudaKernel quantize_weight{.launch = run_with_amax};
const CudaKernel quantize_tiles{.launch = run_tiles};
const CudaKernel quantize_blocks{.launch = run_blocks};

}  // namespace sextant::cuda
