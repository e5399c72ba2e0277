#include "base/units.h"
#include "exec/cuda/attention/attention_tile.cuh"
#include "exec/cuda/runtime/real_type.h"

namespace sextant::cuda {

namespace {

// Online-softmax state of the rows of a thread. `sum` is the thread's own part of the row's sum.
template <int kR>
struct Running {
  float maximum[kR], sum[kR];
  int64_t begin[kR];  // the first key the row sees
};

// Where a tile of keys lies for the first query of a block: it sees keys up to last_seen, and there are `keys`. Both
// count from the tile's first key.
struct View {
  int64_t last_seen, keys, first_key;
  float scale, slope;      // slope: of ALiBi
  int64_t behind, stride;  // how many positions the block's first query stands after the tile's first key; to the next
  float* weights;          // where they go, in shared memory
};

// Turns the scores of one tile into weights exp(score − maximum), which it leaves in shared memory, and scales what is
// known of earlier tiles to the new maximum. A query that has seen no key yet keeps weights and sums of 0.
template <int kDim, int kR, int kC>
__device__ void soften(const View& view, float (&scores)[kR][kC], float (&y)[kR][kDim / kSide], Running<kR>& running) {
  constexpr int pitch = pitch_of(kC * kSide);
#pragma unroll
  for (int i = 0; i < kR; ++i) {
    int64_t last = min(view.last_seen + tile_y() * kR + i, view.keys - 1), hidden = running.begin[i] - view.first_key;
    float maximum = running.maximum[i], position = static_cast<float>(view.behind + (tile_y() * kR + i) * view.stride);
#pragma unroll
    for (int j = 0; j < kC; ++j) {
      int key = tile_x() + kSide * j;
      float score = scores[i][j] * view.scale + view.slope * (static_cast<float>(key * view.stride) - position);
      scores[i][j] = hidden <= key && key <= last ? score : -INFINITY;
      maximum = fmaxf(maximum, scores[i][j]);
    }
    maximum = row_maximum(maximum);
    float reference = maximum == -INFINITY ? 0 : maximum;  // −∞ less −∞ is no number
    float rescale = expf(running.maximum[i] - reference), sum = 0;
    float* row = view.weights + (tile_y() * kR + i) * pitch;
#pragma unroll
    for (int j = 0; j < kC; ++j) {
      float weight = expf(scores[i][j] - reference);
      sum += weight;
      row[tile_x() + kSide * j] = weight;
    }
    running.maximum[i] = maximum;
    running.sum[i] = running.sum[i] * rescale + sum;
#pragma unroll
    for (int c = 0; c < kDim / kSide; ++c) y[i][c] *= rescale;
  }
}

// Leaves out weights of one tile, after their sums were taken: each thread those that it wrote.
template <int kR, int kC>
__device__ void drop_weights(const AttentionBlock& block, int64_t first, int64_t first_key, float* weights) {
  constexpr int pitch = pitch_of(kC * kSide);
#pragma unroll
  for (int i = 0; i < kR; ++i)
#pragma unroll
    for (int j = 0; j < kC; ++j) {
      int row = tile_y() * kR + i, column = tile_x() + kSide * j;
      weights[row * pitch + column] *=
          dropout_factor<Dropping::yes>(block, blockIdx.z, blockIdx.y, first + row, first_key + column);
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
    // A sink is like keys seen before whose values are 0.
    float sink = block.sinks ? static_cast<float>(static_cast<const T*>(block.sinks)[head]) : -INFINITY;
    float before = join ? lse_rows[row] : sink;
    float top = fmaxf(lse, before), old_part = expf(before - top), new_part = expf(lse - top);
    float parts = old_part + new_part, old_weight = old_part / parts, new_weight = new_part / parts / sum;
    bool seen = sum > 0;  // some key: in a ring all may lie before the query's range
    __syncwarp();         // all threads of the row have read its lse
    if (!exists || !seen) continue;
    if (lse_rows && tile_x() == 0) lse_rows[row] = top + logf(parts);
    T* to = const_cast<T*>(rows_of<T>(block.y, b, head, row));
    for_columns<kDim>(y[i], static_cast<int>(block.value_dim), [&](int column, float value) {
      float joined = new_weight * value;
      if (join) joined += old_weight * static_cast<float>(to[column]);
      to[column] = static_cast<T>(joined);
    });
  }
}

// One tile of kQ queries of one head against all the keys it may see.
template <class T, int kDim, int kQ, int kK, Dropping kDropping>
__global__ void __launch_bounds__(kTileThreads) attend_tile(AttentionForward block) {
  if (done_otherwise(block.done)) return;
  constexpr int kR = kQ / kSide, kC = kK / kSide, kPitch = pitch_of(kDim);
  extern __shared__ float4 shared[];
  float* q = reinterpret_cast<float*>(shared);
  float *k = q + kQ * kPitch, *v = k + kK * kPitch, *weights = v + kK * kPitch;

  const int64_t b = blockIdx.z, head = blockIdx.y, kv = head * block.kv_heads / block.heads;
  const int64_t first = static_cast<int64_t>(gridDim.x - 1 - blockIdx.x) * kQ;  // long tiles first, for balance
  const Offsets at = offsets_of(block);
  const int64_t keys = block.start ? *block.start + block.queries : block.keys;
  const RowReads keys_read = key_reads(block), values_read = value_reads(block);
  const float scale = score_scale(block), slope = alibi_slope(block, head);

  load_tile<kQ, kDim>(q, rows_of<T>(block.q, b, head, first), block.q.row, block.queries - first, keys_read);
  float y[kR][kDim / kSide] = {};
  Running<kR> running;
#pragma unroll
  for (int i = 0; i < kR; ++i) {
    running.maximum[i] = -INFINITY, running.sum[i] = 0;
    running.begin[i] = first_seen(block, b, first + tile_y() * kR + i, at);
  }

  const int64_t end = min(keys, first + kQ + at.diagonal);
  for (int64_t first_key = first_seen_by_any<kQ>(block, b, first, at); first_key < end; first_key += kK) {
    __syncthreads();  // the tile before this one has been used
    load_tile<kK, kDim>(k, rows_of<T>(block.k, b, kv, first_key), block.k.row, keys - first_key, keys_read);
    load_tile<kK, kDim>(v, rows_of<T>(block.v, b, kv, first_key), block.v.row, keys - first_key, values_read);
    __syncthreads();
    float scores[kR][kC];
    row_products<kDim>(q, k, keys_read.dim, scores);
    soften<kDim>(View{first + at.diagonal - first_key, keys - first_key, first_key, scale, slope,
                      at.distance + (first - first_key) * block.stride, block.stride, weights},
                 scores, y, running);
    if constexpr (kDropping == Dropping::yes) drop_weights<kR, kC>(block, first, first_key, weights);
    __syncwarp();  // a row of weights belongs to threads of one warp
    add_weighted_rows<kDim, kK>(Weights{weights, pitch_of(kK), 1}, v, y);
  }
  write_rows<T, kDim>(block, first, y, running);
}

template <class T, int kDim, int kQ, int kK, Dropping kDropping>
void launch_forward(const AttentionForward& block, cudaStream_t stream) {
  constexpr int floats = (kQ + 2 * kK) * pitch_of(kDim) + kQ * pitch_of(kK);
  launch_tiles(attend_tile<T, kDim, kQ, kK, kDropping>, block,
               {ceil_div(block.queries, kQ), block.heads, block.batch, floats, stream});
}

// Online-softmax state of a thread's two rows, in a tile on tensor cores.
struct CoreRunning {
  float maximum[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
  int64_t begin[2], own[2];  // the first key a row sees, and the last
};

// As `soften`, in place.
template <int kDim, int kKeys>
__device__ void soften_on_cores(float2 scale_slope, int64_t first_key, float (&scores)[kKeys][4], Fragments<kDim>& y,
                                CoreRunning& running) {
  const auto [scale, slope] = scale_slope;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float maximum = running.maximum[half], sum = 0;
#pragma unroll
    for (int i = 0; i < kKeys * 2; ++i) {
      float& score = scores[i / 2][2 * half + i % 2];
      int64_t key = first_key + i / 2 * 8 + core_column() + i % 2;
      score *= scale;
      if (slope != 0) score += slope * static_cast<float>(key - running.own[half]);
      score = running.begin[half] <= key && key <= running.own[half] ? score : -INFINITY;
      maximum = fmaxf(maximum, score);
    }
    maximum = core_row_maximum(maximum);
    float reference = maximum == -INFINITY ? 0 : maximum, rescale = __expf(running.maximum[half] - reference);
#pragma unroll
    for (int i = 0; i < kKeys * 2; ++i) {
      float& weight = scores[i / 2][2 * half + i % 2];
      weight = __expf(weight - reference);
      sum += weight;
    }
    running.maximum[half] = maximum;
    running.sum[half] = running.sum[half] * rescale + sum;
#pragma unroll
    for (int i = 0; i < kDim / 4; ++i) y[i / 2][2 * half + i % 2] *= rescale;
  }
}

// As `drop_weights`, in place.
template <int kKeys>
__device__ void drop_on_cores(const AttentionBlock& block, int64_t b, int64_t first, int64_t first_key,
                              float (&weights)[kKeys][4]) {
#pragma unroll
  for (int n = 0; n < kKeys; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      weights[n][e] *= dropout_factor<Dropping::yes>(block, b, blockIdx.y, first + core_row() + e / 2 * 8,
                                                     first_key + n * 8 + core_column() + e % 2);
}

// As `attend_tile`, on tensor cores, of a sequence `b`.
template <class T, int kDim, Dropping kDropping>
__device__ void attend_sequence(const AttentionForward& block, int64_t b, T* shared) {
  constexpr int kTile = kCoreRows * core_pitch(kDim);
  T *q = shared, *k = q + kTile, *v = k + kTile;
  const int64_t head = blockIdx.y, kv = head * block.kv_heads / block.heads;
  const int64_t first = static_cast<int64_t>(gridDim.x - 1 - blockIdx.x) * kCoreRows;
  const int dim = static_cast<int>(block.dim);
  const float scale = score_scale(block), slope = alibi_slope(block, head);

  load_core_tile<kCoreRows, kDim>(q, rows_of<T>(block.q, b, head, first), block.q.row, block.queries - first, dim);
  const Offsets at = offsets_of(block);
  Fragments<kDim> y = {};
  CoreRunning running;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int64_t row = first + core_row() + 8 * half;
    running.begin[half] = first_seen(block, b, row, at);
    running.own[half] = min(row + block.diagonal, block.keys - 1);
  }
  const int64_t end = min(block.keys, first + kCoreRows + block.diagonal);
  const int64_t begin = first_seen_by_any<kCoreRows>(block, b, first, at);
  for (int64_t first_key = begin; first_key < end; first_key += kCoreRows) {
    __syncthreads();  // the tile before this one has been used
    int64_t count = end - first_key;
    load_core_tile<kCoreRows, kDim>(k, rows_of<T>(block.k, b, kv, first_key), block.k.row, count, dim);
    load_core_tile<kCoreRows, kDim>(v, rows_of<T>(block.v, b, kv, first_key), block.v.row, count, dim);
    __syncthreads();
    for_core_columns<kCoreRows>(end - first_key, [&]<int kKeys>() {
      Fragments<kKeys> scores;
      core_row_products<kDim, kKeys>(q, k, scores);
      soften_on_cores<kDim>({scale, slope}, first_key, scores, y, running);
      if constexpr (kDropping == Dropping::yes) drop_on_cores(block, b, first, first_key, scores);
      add_core_rows<kDim, kKeys>(scores, v, y);
    });
  }
  CoreRows rows{b, head, first, block.queries, dim};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int64_t row = first + core_row() + 8 * half;
    float sum = core_row_sum(running.sum[half]);
    rows.factors[half] = 1 / sum;
    if (row < block.queries && core_column() == 0)
      block.lse[(b * block.heads + head) * block.lse_length + row] = running.maximum[half] + logf(sum);
  }
  write_core_rows<T, kDim>(block.y, rows, y);
}

template <class T, int kDim, Dropping kDropping>
__global__ void __launch_bounds__(kCoreThreads) attend_on_cores(AttentionForward block) {
  if (done_otherwise(block.done)) return;
  extern __shared__ float4 shared[];
  for (int64_t b = blockIdx.z; b < block.batch; b += gridDim.z) {
    attend_sequence<T, kDim, kDropping>(block, b, reinterpret_cast<T*>(shared));
    __syncthreads();  // the next sequence uses the same tiles
  }
}

template <class T, int kDim>
void launch_on_cores(const AttentionForward& block, cudaStream_t stream) {
  constexpr int floats = 3 * kCoreRows * core_pitch(kDim) / 2;
  const int64_t tiles = ceil_div(block.queries, kCoreRows), sequences = sequences_at_once(block, tiles * block.heads);
  for_dropping(block, [&]<Dropping kDropping>() {
    launch_tiles(attend_on_cores<T, kDim, kDropping>, block,
                 {tiles, block.heads, sequences, floats, stream, kCoreThreads});
  });
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
  if (cores_take(block))
    return for_core_type(block, [&]<class T, int kDim>() { launch_on_cores<T, kDim>(block, stream); });
  for_cuda_type(block.dtype, [&]<class T>() {
    for_head_size(block, [&]<int kDim>() {
      constexpr int kTile = kDim == 256 ? 32 : 64;
      if (block.dropout.keys)
        launch_forward<T, kDim, kTile, kTile, Dropping::yes>(block, stream);
      else if (block.queries <= kSide)
        launch_forward<T, kDim, kSide, kTile, Dropping::no>(block, stream);  // generating: a token at a time
      else
        launch_forward<T, kDim, kTile, kTile, Dropping::no>(block, stream);
    });
  });
}

}  // namespace sextant::cuda
