#include "base/units.h"
#include "exec/cuda/attention_tile.cuh"
#include "exec/cuda/real_type.h"

namespace sextant::cuda {

namespace {

// What is known of the rows of a thread so far. `sum` is the thread's own part of the row's sum.
template <int kR>
struct Running {
  float maximum[kR], sum[kR];
};

// Where a tile of keys lies for the first query of a block: it sees keys up to first_seen, and there are `keys`. Both
// count from the tile's first key.
struct View {
  int64_t first_seen, keys;
  float scale;
  float* weights;  // where they go, in shared memory
};

// Turns the scores of one tile into weights exp(score − maximum), which it leaves in shared memory, and scales what is
// known of earlier tiles to the new maximum. Every query sees key 0, so that no maximum stays at −∞.
template <int kDim, int kR, int kC>
__device__ void soften(const View& view, float (&scores)[kR][kC], float (&y)[kR][kDim / kSide], Running<kR>& running) {
  constexpr int pitch = pitch_of(kC * kSide);
#pragma unroll
  for (int i = 0; i < kR; ++i) {
    int64_t last = min(view.first_seen + tile_y() * kR + i, view.keys - 1);
    float maximum = running.maximum[i];
#pragma unroll
    for (int j = 0; j < kC; ++j) {
      scores[i][j] = tile_x() + kSide * j <= last ? scores[i][j] * view.scale : -INFINITY;
      maximum = fmaxf(maximum, scores[i][j]);
    }
    maximum = row_maximum(maximum);
    float rescale = expf(running.maximum[i] - maximum), sum = 0;
    float* row = view.weights + (tile_y() * kR + i) * pitch;
#pragma unroll
    for (int j = 0; j < kC; ++j) {
      float weight = expf(scores[i][j] - maximum);
      sum += weight;
      row[tile_x() + kSide * j] = weight;
    }
    running.maximum[i] = maximum;
    running.sum[i] = running.sum[i] * rescale + sum;
#pragma unroll
    for (int c = 0; c < kDim / kSide; ++c) y[i][c] *= rescale;
  }
}

// Writes the rows of a tile, joined with what is there where the block says so: each y is weighted by the exponential
// of its log-sum-exp.
template <class T, int kDim, int kR>
__device__ void write_rows(const AttentionForward& block, int64_t first, float (&y)[kR][kDim / kSide],
                           Running<kR>& running) {
  const int64_t b = blockIdx.z, head = blockIdx.y;
  float* lse_rows = block.lse ? block.lse + (b * block.heads + head) * block.lse_length : nullptr;
#pragma unroll
  for (int i = 0; i < kR; ++i) {
    int64_t row = first + tile_y() * kR + i;
    bool exists = row < block.queries, join = exists && block.onto == Onto::existing;
    float sum = row_sum(running.sum[i]), lse = running.maximum[i] + logf(sum);
    float before = join ? lse_rows[row] : -INFINITY;
    float top = fmaxf(lse, before), old_part = expf(before - top), new_part = expf(lse - top);
    float parts = old_part + new_part, old_weight = old_part / parts, new_weight = new_part / parts / sum;
    __syncwarp();  // all threads of the row have read its lse
    if (!exists) continue;
    if (lse_rows && tile_x() == 0) lse_rows[row] = top + logf(parts);
    T* to = const_cast<T*>(rows_of<T>(block.y, b, head, row));
    for_columns<kDim>(y[i], static_cast<int>(block.dim), [&](int column, float value) {
      float joined = new_weight * value;
      if (join) joined += old_weight * static_cast<float>(to[column]);
      to[column] = static_cast<T>(joined);
    });
  }
}

// One tile of kQ queries of one head against all the keys it may see.
template <class T, int kDim, int kQ, int kK>
__global__ void __launch_bounds__(kTileThreads) attend_tile(AttentionForward block) {
  constexpr int kR = kQ / kSide, kC = kK / kSide, kPitch = pitch_of(kDim);
  extern __shared__ float4 shared[];
  float* q = reinterpret_cast<float*>(shared);
  float *k = q + kQ * kPitch, *v = k + kK * kPitch, *weights = v + kK * kPitch;

  const int64_t b = blockIdx.z, head = blockIdx.y, kv = head * block.kv_heads / block.heads;
  const int64_t first = static_cast<int64_t>(gridDim.x - 1 - blockIdx.x) * kQ;  // long tiles first, for balance
  const int64_t diagonal = block.start ? *block.start : block.diagonal;
  const int64_t keys = block.start ? *block.start + block.queries : block.keys;
  const int dim = static_cast<int>(block.dim);
  const float scale = rsqrtf(static_cast<float>(dim));

  load_tile<kQ, kDim>(q, rows_of<T>(block.q, b, head, first), block.q.row, block.queries - first, dim);
  float y[kR][kDim / kSide] = {};
  Running<kR> running;
#pragma unroll
  for (int i = 0; i < kR; ++i) running.maximum[i] = -INFINITY, running.sum[i] = 0;

  const int64_t end = min(keys, first + kQ + diagonal);
  for (int64_t first_key = 0; first_key < end; first_key += kK) {
    __syncthreads();  // the tile before this one has been used
    load_tile<kK, kDim>(k, rows_of<T>(block.k, b, kv, first_key), block.k.row, keys - first_key, dim);
    load_tile<kK, kDim>(v, rows_of<T>(block.v, b, kv, first_key), block.v.row, keys - first_key, dim);
    __syncthreads();
    float scores[kR][kC];
    row_products<kDim>(q, k, dim, scores);
    soften<kDim>(View{first + diagonal - first_key, keys - first_key, scale, weights}, scores, y, running);
    __syncwarp();  // a row of weights belongs to threads of one warp
    add_weighted_rows<kDim, kK>(Weights{weights, pitch_of(kK), 1}, v, y);
  }
  write_rows<T, kDim>(block, first, y, running);
}

template <class T, int kDim, int kQ, int kK>
void launch_forward(const AttentionForward& block, cudaStream_t stream) {
  constexpr int floats = (kQ + 2 * kK) * pitch_of(kDim) + kQ * pitch_of(kK);
  launch_tiles(attend_tile<T, kDim, kQ, kK>, block,
               {ceil_div(block.queries, kQ), block.heads, block.batch, floats, stream});
}

__global__ void __launch_bounds__(kTileThreads) clear_rows(float* lse, int64_t count) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kTileThreads + threadIdx.x;
  if (i < count) lse[i] = -INFINITY;
}

}  // namespace

void clear_lse(float* lse, int64_t count, cudaStream_t stream) {
  if (count > 0)
    clear_rows<<<static_cast<unsigned>(ceil_div(count, kTileThreads)), kTileThreads, 0, stream>>>(lse, count);
}

void attend(const AttentionForward& block, cudaStream_t stream) {
  if (block.batch * block.heads * block.queries == 0) return;
  for_cuda_type(block.dtype, [&]<class T>() {
    for_head_size(block.dim, [&]<int kDim>() {
      constexpr int kTile = kDim == 256 ? 32 : 64;
      if (block.queries <= kSide)
        launch_forward<T, kDim, kSide, kTile>(block, stream);  // generating: a token at a time
      else
        launch_forward<T, kDim, kTile, kTile>(block, stream);
    });
  });
}

}  // namespace sextant::cuda
