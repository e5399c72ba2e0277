// The gradient in two passes, so that every sum has one owner: keys by keys for dk and dv, queries by queries for dq.
// Both make the scores again from q, k and the log-sum-exp.
#include "base/units.h"
#include "exec/cuda/attention/attention_tile.cuh"
#include "exec/cuda/runtime/real_type.h"

namespace sextant::cuda {

namespace {

constexpr int kDotThreads = 256;

template <class T>
__global__ void __launch_bounds__(kDotThreads) dot_rows(OutputDots rows) {
  if (done_otherwise(rows.done)) return;
  constexpr int kWarps = kDotThreads / 32;
  const int lane = threadIdx.x % 32;
  const int64_t count = rows.batch * rows.length * rows.heads, step = static_cast<int64_t>(gridDim.x) * kWarps;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32; at < count; at += step) {
    const T *dy = static_cast<const T*>(rows.dy) + at * rows.dim, *y = static_cast<const T*>(rows.y) + at * rows.dim;
    float sum = 0;
    for (int64_t j = lane; j < rows.dim; j += 32) sum = fmaf(static_cast<float>(dy[j]), static_cast<float>(y[j]), sum);
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffff, sum, other);
    int64_t head = at % rows.heads, row = at / rows.heads % rows.length, b = at / rows.heads / rows.length;
    if (lane == 0) rows.dots[(b * rows.heads + head) * rows.length + row] = sum;
  }
}

// A tile of queries against a tile of keys, all in shared memory.
struct Square {
  const float *q, *dy, *k, *v;
  int64_t first, first_key, head;
};

// p <- exp(c·q·kᵀ − lse) unless null, ds <- c·p·(dy·vᵀ − Σ dy·y); both 0 where a key may not be seen. With dropout,
// p <- p·m and ds <- c·p·(m·dy·vᵀ − Σ dy·y), m being the mask.
template <int kDim, int kQ, int kK, Dropping kDropping>
__device__ void score_gradients(const AttentionGradient& block, const Square& square, float* p, float* ds) {
  constexpr int kR = kQ / kSide, kC = kK / kSide, kPitch = pitch_of(kK);
  const float scale = score_scale(block), alibi = alibi_slope(block, square.head);
  float scores[kR][kC], slopes[kR][kC];
  row_products<kDim>(square.q, square.k, static_cast<int>(block.dim), scores);
  row_products<kDim>(square.dy, square.v, static_cast<int>(block.value_dim), slopes);
#pragma unroll
  for (int i = 0; i < kR; ++i) {
    int64_t row = square.first + tile_y() * kR + i;
    bool exists = row < block.queries;
    int64_t at = (static_cast<int64_t>(blockIdx.z) * block.heads + square.head) * block.lse_length + row;
    float lse = exists ? block.lse[at] : 0, dot = exists ? block.dots[at] : 0;
    int64_t begin = first_seen(block, blockIdx.z, row, offsets_of(block));
#pragma unroll
    for (int j = 0; j < kC; ++j) {
      int column = tile_x() + kSide * j;
      int64_t key = square.first_key + column;
      bool seen = exists && begin <= key && key < block.keys && key <= row + block.diagonal;
      float bias = alibi * static_cast<float>((key - row) * block.stride - block.distance);
      float weight = seen ? expf(scores[i][j] * scale + bias - lse) : 0;
      float kept = dropout_factor<kDropping>(block, blockIdx.z, square.head, row, key);
      if (p) p[(tile_y() * kR + i) * kPitch + column] = weight * kept;
      ds[(tile_y() * kR + i) * kPitch + column] = scale * weight * (slopes[i][j] * kept - dot);
    }
  }
}

// Rows of a head from `first` on, `dim` wide; there are `count` in all.
struct TileRows {
  int64_t head, first, count, dim;
};

template <class T, int kDim, int kR>
__device__ void write_gradient(const AttentionGradient& block, const HeadRows& to, TileRows tile,
                               float (&sums)[kR][kDim / kSide]) {
#pragma unroll
  for (int i = 0; i < kR; ++i) {
    int64_t row = tile.first + tile_y() * kR + i;
    if (row >= tile.count) continue;
    T* at = const_cast<T*>(rows_of<T>(to, blockIdx.z, tile.head, row));
    for_columns<kDim>(sums[i], static_cast<int>(tile.dim), [&](int column, float value) {
      if (block.onto == Onto::existing) value += static_cast<float>(at[column]);
      at[column] = static_cast<T>(value);
    });
  }
}

// dk, dv of kK keys of one key head: the queries of all heads that read it, in order.
template <class T, int kDim, int kQ, int kK, Dropping kDropping>
__global__ void __launch_bounds__(kTileThreads) key_gradients(AttentionGradient block) {
  if (done_otherwise(block.done)) return;
  constexpr int kR = kK / kSide, kPitch = pitch_of(kDim);
  extern __shared__ float4 shared[];
  float* k = reinterpret_cast<float*>(shared);
  float *v = k + kK * kPitch, *q = v + kK * kPitch, *dy = q + kQ * kPitch;
  float *p = dy + kQ * kPitch, *ds = p + kQ * pitch_of(kK);

  const int64_t b = blockIdx.z, kv = blockIdx.y, first_key = static_cast<int64_t>(blockIdx.x) * kK;
  const int64_t group = block.heads / block.kv_heads;
  const RowReads keys_read = key_reads(block), values_read = value_reads(block);
  load_tile<kK, kDim>(k, rows_of<T>(block.k, b, kv, first_key), block.k.row, block.keys - first_key, keys_read);
  load_tile<kK, kDim>(v, rows_of<T>(block.v, b, kv, first_key), block.v.row, block.keys - first_key, values_read);
  float dk[kR][kDim / kSide] = {}, dv[kR][kDim / kSide] = {};

  // Queries before the first key's own position see none of the tile.
  const Offsets at = offsets_of(block);
  const int64_t from = max(first_key - at.diagonal, int64_t{0}) / kQ * kQ;
  const int64_t to = last_query_end(block, first_key + kK, at);
  for (int64_t head = kv * group; head < (kv + 1) * group; ++head) {
    for (int64_t first = from; first < to; first += kQ) {
      if (first_seen_by_any<kQ>(block, b, first, at) >= first_key + kK) continue;
      __syncthreads();  // the square before this one has been used
      load_tile<kQ, kDim>(q, rows_of<T>(block.q, b, head, first), block.q.row, block.queries - first, keys_read);
      load_tile<kQ, kDim>(dy, rows_of<T>(block.dy, b, head, first), block.dy.row, block.queries - first, values_read);
      __syncthreads();
      score_gradients<kDim, kQ, kK, kDropping>(block, {q, dy, k, v, first, first_key, head}, p, ds);
      __syncthreads();
      add_weighted_rows<kDim, kQ>(Weights{p, 1, pitch_of(kK)}, dy, dv);
      add_weighted_rows<kDim, kQ>(Weights{ds, 1, pitch_of(kK)}, q, dk);
    }
  }
  write_gradient<T, kDim>(block, block.dk, {kv, first_key, block.keys, block.dim}, dk);
  write_gradient<T, kDim>(block, block.dv, {kv, first_key, block.keys, block.value_dim}, dv);
}

// dq of kQ queries of one head.
template <class T, int kDim, int kQ, int kK, Dropping kDropping>
__global__ void __launch_bounds__(kTileThreads) query_gradients(AttentionGradient block) {
  if (done_otherwise(block.done)) return;
  constexpr int kR = kQ / kSide, kPitch = pitch_of(kDim);
  extern __shared__ float4 shared[];
  float* k = reinterpret_cast<float*>(shared);
  float *v = k + kK * kPitch, *q = v + kK * kPitch, *dy = q + kQ * kPitch, *ds = dy + kQ * kPitch;

  const int64_t b = blockIdx.z, head = blockIdx.y, kv = head * block.kv_heads / block.heads;
  const int64_t first = static_cast<int64_t>(gridDim.x - 1 - blockIdx.x) * kQ;  // long tiles first, for balance
  const RowReads keys_read = key_reads(block), values_read = value_reads(block);
  load_tile<kQ, kDim>(q, rows_of<T>(block.q, b, head, first), block.q.row, block.queries - first, keys_read);
  load_tile<kQ, kDim>(dy, rows_of<T>(block.dy, b, head, first), block.dy.row, block.queries - first, values_read);
  float dq[kR][kDim / kSide] = {};

  const Offsets at = offsets_of(block);
  const int64_t end = min(block.keys, first + kQ + at.diagonal);
  const int64_t begin = first_seen_by_any<kQ>(block, b, first, at);
  for (int64_t first_key = begin; first_key < end; first_key += kK) {
    __syncthreads();  // the square before this one has been used
    load_tile<kK, kDim>(k, rows_of<T>(block.k, b, kv, first_key), block.k.row, block.keys - first_key, keys_read);
    load_tile<kK, kDim>(v, rows_of<T>(block.v, b, kv, first_key), block.v.row, block.keys - first_key, values_read);
    __syncthreads();
    score_gradients<kDim, kQ, kK, kDropping>(block, {q, dy, k, v, first, first_key, head}, nullptr, ds);
    __syncwarp();  // a row of ds belongs to threads of one warp
    add_weighted_rows<kDim, kK>(Weights{ds, pitch_of(kK), 1}, k, dq);
  }
  write_gradient<T, kDim>(block, block.dq, {head, first, block.queries, block.dim}, dq);
}

// Of a tile of queries, in shared memory: what their scores need.
template <int kQ>
struct CoreStatistics {
  float lse[kQ], dots[kQ];
  int64_t begins[kQ];
  float alibi;  // the head's slope
  int end;      // of the queries that see a tile of keys

  __device__ void load(const AttentionGradient& block, int64_t b, int64_t head, int64_t first) {
    if (threadIdx.x == 0) alibi = alibi_slope(block, head);
    for (int i = threadIdx.x; i < kQ; i += kCoreThreads) {
      int64_t row = first + i, at = (b * block.heads + head) * block.lse_length + row;
      bool exists = row < block.queries;
      lse[i] = exists ? block.lse[at] : 0;
      dots[i] = exists ? block.dots[at] : 0;
      begins[i] = exists ? first_seen(block, b, row, offsets_of(block)) : INT64_MAX;  // sees nothing
    }
  }

  // score <- p, slope <- ds, of query `i` of the tile, at position `own`, and a key; `kept` is dropout's factor.
  __device__ void turn(int i, int64_t own, int64_t key, float scale, float kept, float& score, float& slope) const {
    score = score * scale - lse[i];
    if (alibi != 0) score += alibi * static_cast<float>(key - own);
    score = begins[i] <= key && key <= own ? __expf(score) : 0;
    slope = scale * score * (slope * kept - dots[i]);
    score *= kept;
  }
};

// Behind the last query from `from` on, and before `to`, that sees a key before `key_end`: documents end sooner than
// their sequence. `end` is in shared memory.
__device__ inline int64_t seen_query_end(const AttentionBlock& block, int64_t b, int64_t from, int64_t to,
                                         int64_t key_end, int& end) {
  if (!block.begins) return to;
  if (threadIdx.x == 0) end = 0;
  __syncthreads();
  const Offsets at = offsets_of(block);
  int last = 0;
  for (int64_t row = from + threadIdx.x; row < to; row += kCoreThreads)
    if (first_seen(block, b, row, at) < key_end) last = static_cast<int>(row - from) + 1;
  if (last > 0) atomicMax(&end, last);
  __syncthreads();
  return from + end;
}

// As `key_gradients`, on tensor cores, of a sequence `b`: scores are made turned, a row for each key.
template <class T, int kDim, int kQ, Dropping kDropping>
__device__ void key_gradients_of(const AttentionGradient& block, int64_t b, T* shared, CoreStatistics<kQ>& statistics) {
  constexpr int kPitch = core_pitch(kDim);
  T *k = shared, *v = k + kCoreRows * kPitch, *q = v + kCoreRows * kPitch;
  T* dy = q + kQ * kPitch;

  const int64_t kv = blockIdx.y, first_key = static_cast<int64_t>(blockIdx.x) * kCoreRows;
  const int64_t group = block.heads / block.kv_heads, count = block.keys - first_key;
  const int dim = static_cast<int>(block.dim);
  const float scale = score_scale(block);
  load_core_tile<kCoreRows, kDim>(k, rows_of<T>(block.k, b, kv, first_key), block.k.row, count, dim);
  load_core_tile<kCoreRows, kDim>(v, rows_of<T>(block.v, b, kv, first_key), block.v.row, count, dim);
  Fragments<kDim> dk = {}, dv = {};

  const Offsets at = offsets_of(block);
  const int64_t from = max(first_key - at.diagonal, int64_t{0}) / kQ * kQ;
  const int64_t to = seen_query_end(block, b, from, last_query_end(block, first_key + kCoreRows, at),
                                    first_key + kCoreRows, statistics.end);
  for (int64_t head = kv * group; head < (kv + 1) * group; ++head) {
    for (int64_t first = from; first < to; first += kQ) {
      __syncthreads();  // the square before this one has been used
      int64_t left = to - first;
      load_core_tile<kQ, kDim>(q, rows_of<T>(block.q, b, head, first), block.q.row, left, dim);
      load_core_tile<kQ, kDim>(dy, rows_of<T>(block.dy, b, head, first), block.dy.row, left, dim);
      statistics.load(block, b, head, first);
      __syncthreads();
      for_core_columns<kQ>(left, [&]<int kQueries>() {
        Fragments<kQueries> scores, slopes;
        core_row_products<kDim, kQueries>(k, q, scores);
        core_row_products<kDim, kQueries>(v, dy, slopes);
#pragma unroll
        for (int n = 0; n < kQueries / 8; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            int i = n * 8 + core_column() + e % 2;
            int64_t key = first_key + core_row() + e / 2 * 8;
            float kept = dropout_factor<kDropping>(block, b, head, first + i, key);
            statistics.turn(i, first + i + block.diagonal, key, scale, kept, scores[n][e], slopes[n][e]);
          }
        add_core_rows<kDim, kQueries>(scores, dy, dv);
        add_core_rows<kDim, kQueries>(slopes, q, dk);
      });
    }
  }
  write_core_rows<T, kDim>(block.dk, {b, kv, first_key, block.keys, dim}, dk);
  write_core_rows<T, kDim>(block.dv, {b, kv, first_key, block.keys, dim}, dv);
}

template <class T, int kDim, int kQ, Dropping kDropping>
__global__ void __launch_bounds__(kCoreThreads) key_gradients_on_cores(AttentionGradient block) {
  if (done_otherwise(block.done)) return;
  extern __shared__ float4 shared[];
  __shared__ CoreStatistics<kQ> statistics;
  for (int64_t b = blockIdx.z; b < block.batch; b += gridDim.z) {
    key_gradients_of<T, kDim, kQ, kDropping>(block, b, reinterpret_cast<T*>(shared), statistics);
    __syncthreads();  // the next sequence uses the same tiles
  }
}

// As `query_gradients`, on tensor cores, of a sequence `b`.
template <class T, int kDim, int kK, Dropping kDropping>
__device__ void query_gradients_of(const AttentionGradient& block, int64_t b, T* shared,
                                   CoreStatistics<kCoreRows>& statistics) {
  constexpr int kPitch = core_pitch(kDim);
  T *q = shared, *dy = q + kCoreRows * kPitch, *k = dy + kCoreRows * kPitch;
  T* v = k + kK * kPitch;

  const int64_t head = blockIdx.y, kv = head * block.kv_heads / block.heads;
  const int64_t first = static_cast<int64_t>(gridDim.x - 1 - blockIdx.x) * kCoreRows, left = block.queries - first;
  const int dim = static_cast<int>(block.dim);
  const float scale = score_scale(block);
  load_core_tile<kCoreRows, kDim>(q, rows_of<T>(block.q, b, head, first), block.q.row, left, dim);
  load_core_tile<kCoreRows, kDim>(dy, rows_of<T>(block.dy, b, head, first), block.dy.row, left, dim);
  statistics.load(block, b, head, first);
  Fragments<kDim> dq = {};

  const Offsets at = offsets_of(block);
  const int64_t end = min(block.keys, first + kCoreRows + at.diagonal);
  const int64_t begin = first_seen_by_any<kCoreRows>(block, b, first, at);
  for (int64_t first_key = begin; first_key < end; first_key += kK) {
    __syncthreads();  // the square before this one has been used
    int64_t count = end - first_key;
    load_core_tile<kK, kDim>(k, rows_of<T>(block.k, b, kv, first_key), block.k.row, count, dim);
    load_core_tile<kK, kDim>(v, rows_of<T>(block.v, b, kv, first_key), block.v.row, count, dim);
    __syncthreads();
    for_core_columns<kK>(count, [&]<int kKeys>() {
      Fragments<kKeys> scores, slopes;
      core_row_products<kDim, kKeys>(q, k, scores);
      core_row_products<kDim, kKeys>(dy, v, slopes);
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          int i = core_row() + e / 2 * 8;
          int64_t own = min(first + i + block.diagonal, block.keys - 1),
                  key = first_key + n * 8 + core_column() + e % 2;
          float kept = dropout_factor<kDropping>(block, b, head, first + i, key);
          statistics.turn(i, own, key, scale, kept, scores[n][e], slopes[n][e]);
        }
      add_core_rows<kDim, kKeys>(slopes, k, dq);
    });
  }
  write_core_rows<T, kDim>(block.dq, {b, head, first, block.queries, dim}, dq);
}

template <class T, int kDim, int kK, Dropping kDropping>
__global__ void __launch_bounds__(kCoreThreads) query_gradients_on_cores(AttentionGradient block) {
  if (done_otherwise(block.done)) return;
  extern __shared__ float4 shared[];
  __shared__ CoreStatistics<kCoreRows> statistics;
  for (int64_t b = blockIdx.z; b < block.batch; b += gridDim.z) {
    query_gradients_of<T, kDim, kK, kDropping>(block, b, reinterpret_cast<T*>(shared), statistics);
    __syncthreads();  // the next sequence uses the same tiles
  }
}

template <class T, int kDim>
void launch_on_cores(const AttentionGradient& block, cudaStream_t stream) {
  constexpr int kOther = kDim == 64 ? 64 : 32;  // two results of 128 columns leave few registers for scores
  constexpr int floats = (kCoreRows + kOther) * core_pitch(kDim);
  const int64_t keys = ceil_div(block.keys, kCoreRows), queries = ceil_div(block.queries, kCoreRows);
  auto launch = [&](int64_t tiles, int64_t heads) {
    return TileLaunch{tiles, heads, sequences_at_once(block, tiles * heads), floats, stream, kCoreThreads};
  };
  for_dropping(block, [&]<Dropping kDropping>() {
    launch_tiles(key_gradients_on_cores<T, kDim, kOther, kDropping>, block, launch(keys, block.kv_heads));
    launch_tiles(query_gradients_on_cores<T, kDim, kOther, kDropping>, block, launch(queries, block.heads));
  });
}

template <class T, int kDim, int kQ, int kK>
void launch_backward(const AttentionGradient& block, cudaStream_t stream) {
  constexpr int rows = 2 * (kQ + kK) * pitch_of(kDim), square = kQ * pitch_of(kK);
  for_dropping(block, [&]<Dropping kDropping>() {
    launch_tiles(key_gradients<T, kDim, kQ, kK, kDropping>, block,
                 {ceil_div(block.keys, kK), block.kv_heads, block.batch, rows + 2 * square, stream});
    launch_tiles(query_gradients<T, kDim, kQ, kK, kDropping>, block,
                 {ceil_div(block.queries, kQ), block.heads, block.batch, rows + square, stream});
  });
}

}  // namespace

// Tiles as large as the 163 KiB of shared memory of an A100 allow.
void attend_backward(const AttentionGradient& block, cudaStream_t stream) {
  if (block.batch * block.heads * block.queries == 0) return;
  if (cores_take(block))
    return for_core_type(block, [&]<class T, int kDim>() { launch_on_cores<T, kDim>(block, stream); });
  for_cuda_type(block.dtype, [&]<class T>() {
    for_head_size(block, [&]<int kDim>() {
      constexpr int kQ = kDim == 64 ? 64 : 32, kK = kDim == 256 ? 32 : 64;
      launch_backward<T, kDim, kQ, kK>(block, stream);
    });
  });
}

void output_dots(const OutputDots& rows, cudaStream_t stream) {
  // As many blocks as a large device holds: more would cost time where the work has been done otherwise.
  constexpr int64_t kMostBlocks = 1024;
  int64_t count = rows.batch * rows.length * rows.heads;
  if (count == 0) return;
  int64_t blocks = std::min(ceil_div(count, kDotThreads / 32), kMostBlocks);
  for_cuda_type(rows.dtype,
                [&]<class T>() { dot_rows<T><<<static_cast<unsigned>(blocks), kDotThreads, 0, stream>>>(rows); });
}

}  // namespace sextant::cuda
