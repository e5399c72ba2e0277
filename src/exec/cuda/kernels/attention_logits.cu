// The largest logit. A maximum does not depend on the order, so warps join theirs as they come. On tensor cores, for
// types of 16 bits, a warp takes 32 queries (16 of wide heads) and goes with its block from tile to tile of keys (on
// Hopper as attention_logits_hopper.cu has it); else a warp takes a query, and its lanes the keys that it sees.
#include <cmath>
#include <type_traits>

#include "exec/alibi.h"
#include "exec/cuda/attention/async_copy.cuh"
#include "exec/cuda/attention/attention_tile.cuh"
#include "exec/cuda/kernels/attention_logits.cuh"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"
#include "exec/cuda/runtime/real_type.h"
#include "ops/attention_scale.h"
#include "targets/cuda/statistics_sizes.h"

namespace sextant::cuda {

namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;

template <class T>
__global__ void __launch_bounds__(kThreads) largest_logits(Logits<T> a, uint32_t* largest) {
  int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= a.sequences * a.heads.q * a.length) return;
  int64_t i = row % a.length, head = row / a.length % a.heads.q, b = row / a.length / a.heads.q;
  const T* sequence = a.qkv + b * a.length * a.width;
  const T *q = sequence + i * a.width + head * a.heads.dim,
          *keys = sequence + (a.heads.q + head * a.heads.kv / a.heads.q) * a.heads.dim;
  int64_t first = a.first_key(b, i);
  float slope = slope_of(a.first_head + head, a.model_heads);
  uint32_t most = 0;
  for (int64_t j = first + threadIdx.x % 32; j <= i; j += 32) {
    const T* k = keys + j * a.width;
    float dot = 0;
    for (int64_t d = 0; d < a.heads.dim; ++d) dot += static_cast<float>(q[d]) * static_cast<float>(k[d]);
    most = max(most, ordered_bits(a.factor * dot - slope * static_cast<float>(i - j)));
  }
  most = __reduce_max_sync(kWholeWarp, most);
  if (threadIdx.x % 32 == 0 && most > __ldcg(largest)) atomicMax(largest, most);
}

constexpr int kCoreWarps = 8;

// Two tiles of keys lie in shared memory, one of them on its way.
constexpr int keys_of_tile(int dim) {
  return dim > 128 ? 32 : 64;
}

// Four neighbouring pieces of 8 columns of 8 rows; lane l names row l % 8 of piece l / 8.
template <class T>
__device__ inline void load_pieces_of_keys(const T* at, uint32_t (&pieces)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(pieces[0]), "=r"(pieces[1]), "=r"(pieces[2]), "=r"(pieces[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(at))));
}

// The queries of a warp, kHigh times 16, and what they see. A thread has rows lane / 4 and the one 8 below of each 16.
template <class T, int kDim, int kHigh>
class QueriesOfWarp {
 public:
  static constexpr int kRows = 16 * kHigh, kKeysOfTile = keys_of_tile(kDim);

  __device__ QueriesOfWarp(const Logits<T>& a, int64_t b, int64_t head, int64_t first_row) : first_row_(first_row) {
    const T* q = a.qkv + b * a.length * a.width + head * a.heads.dim;
#pragma unroll
    for (int high = 0; high < kHigh; ++high)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64_t row = row_of(high, half);
        seen_[high][half] = row < a.length ? a.first_key(b, row) : INT64_MAX;
        earliest_ = min(earliest_, seen_[high][half]);
        latest_ = max(latest_, seen_[high][half]);
#pragma unroll
        for (int d = 0; d < kDim / 8; ++d) {
          const int column = 8 * d + core_column();
          bool exists = row < a.length && column < a.heads.dim;
          q_[high][d / 2][2 * (d % 2) + half] = exists ? pair_at(q + row * a.width + column) : 0;
        }
      }
    for (int other = 4; other < 32; other *= 2) {
      earliest_ = min(earliest_, __shfl_xor_sync(kWholeWarp, earliest_, other));
      latest_ = max(latest_, __shfl_xor_sync(kWholeWarp, latest_, other));
    }
  }

  __device__ int64_t earliest() const {
    return earliest_;
  }  // the first key that any sees
  __device__ bool sees(int64_t first_key) const {
    return first_key < first_row_ + kRows && first_key + kKeysOfTile > earliest_;
  }
  // Whether all see every key of the tile.
  __device__ bool see_all(int64_t first_key) const {
    return first_key + kKeysOfTile <= first_row_ + 1 && first_key >= latest_;
  }

  // Calls fold(query, key, product, sees) for what the thread has of the tile.
  template <class Fold>
  __device__ void meet(const T* keys, int64_t first_key, const Fold& fold) const {
    constexpr int pitch = core_pitch(kDim);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const T* at = keys + lane % 8 * pitch + lane / 8 * 8;
#pragma unroll 2
    for (int n = 0; n < kKeysOfTile; n += 8) {
      float products[kHigh][4] = {};
#pragma unroll
      for (int d = 0; d < kDim; d += 32) {
        uint32_t pieces[4];
        load_pieces_of_keys(at + n * pitch + d, pieces);
#pragma unroll
        for (int high = 0; high < kHigh; ++high) {
          core_product<T>(products[high], q_[high][d / 16], pieces[0], pieces[1]);
          core_product<T>(products[high], q_[high][d / 16 + 1], pieces[2], pieces[3]);
        }
      }
#pragma unroll
      for (int high = 0; high < kHigh; ++high)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int64_t row = row_of(high, e / 2), key = first_key + n + core_column() + e % 2;
          fold(row, key, products[high][e], seen_[high][e / 2] <= key && key <= row);
        }
    }
  }

 private:
  __device__ int64_t row_of(int high, int half) const {
    return first_row_ + 16 * high + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * half;
  }

  int64_t first_row_;
  uint32_t q_[kHigh][kDim / 16][4];
  int64_t seen_[kHigh][2];  // the first key of each row
  int64_t earliest_ = INT64_MAX, latest_ = 0;
};

// The keys of a head, which a block brings tile by tile into shared memory.
template <class T, int kDim>
class KeyTiles {
 public:
  static constexpr int kKeys = keys_of_tile(kDim), kElements = kKeys * core_pitch(kDim);

  // Keys behind `end` are zero, as are columns that a head does not have.
  __device__ KeyTiles(const T* from, int64_t stride, int64_t dim, int64_t end, T* to)
      : from_(from), stride_(stride), dim_(dim), end_(end), to_(to) {}

  __device__ void copy(int64_t first_key, int buffer) const {
    constexpr int kPieces = kDim / 8;
    for (int i = static_cast<int>(threadIdx.x); i < kKeys * kPieces; i += 32 * kCoreWarps) {
      const int row = i / kPieces, column = i % kPieces * 8;
      auto* piece = reinterpret_cast<Packed<T, 8>*>(to_ + buffer * kElements + row * core_pitch(kDim) + column);
      if (first_key + row < end_ && column < dim_)
        copy_async<T, 8>(piece, from_ + (first_key + row) * stride_ + column);
      else
        *piece = {};
    }
    close_copies();
  }

  __device__ const T* tile(int buffer) const { return to_ + buffer * kElements; }

 private:
  const T* from_;
  int64_t stride_, dim_, end_;
  T* to_;
};

// Where no distance counts, logits are ordered as products are, and are made of the largest alone.
template <class T, int kDim, int kHigh>
__global__ void __launch_bounds__(32 * kCoreWarps) largest_logits_on_cores(Logits<T> a, uint32_t* largest) {
  using Queries = QueriesOfWarp<T, kDim, kHigh>;
  using Tiles = KeyTiles<T, kDim>;
  __shared__ __align__(16) T keys[2 * Tiles::kElements];
  __shared__ int64_t earliest[kCoreWarps];
  const int64_t b = blockIdx.z, head = blockIdx.y, warp = threadIdx.x / 32;
  // Blocks with many keys first, for balance.
  const int64_t first_row = static_cast<int64_t>(gridDim.x - 1 - blockIdx.x) * Queries::kRows * kCoreWarps;
  const int64_t end = min(a.length, first_row + Queries::kRows * kCoreWarps);
  const Queries queries(a, b, head, first_row + warp * Queries::kRows);
  if (threadIdx.x % 32 == 0) earliest[warp] = queries.earliest();
  __syncthreads();
  int64_t first_key = earliest[0];
  for (int64_t other : earliest) first_key = min(first_key, other);
  const T* from = a.qkv + b * a.length * a.width + (a.heads.q + head * a.heads.kv / a.heads.q) * a.heads.dim;
  const Tiles tiles(from, a.width, a.heads.dim, end, keys);
  const float slope = slope_of(a.first_head + head, a.model_heads);
  const bool by_product = slope == 0 && a.factor >= 0;
  auto logit = [&](int64_t i, int64_t j, float product) {
    return a.factor * product - slope * static_cast<float>(i - j);
  };
  float most = -INFINITY;
  tiles.copy(first_key, 0);
  for (int buffer = 0; first_key < end; first_key += Tiles::kKeys, buffer ^= 1) {
    wait_for_copies<0>();
    __syncthreads();  // the tile has come, and the one before has been used
    if (first_key + Tiles::kKeys < end) tiles.copy(first_key + Tiles::kKeys, buffer ^ 1);
    if (!queries.sees(first_key)) continue;
    if (by_product && queries.see_all(first_key))
      queries.meet(tiles.tile(buffer), first_key,
                   [&](int64_t, int64_t, float product, bool) { most = larger(most, product); });
    else
      queries.meet(tiles.tile(buffer), first_key, [&](int64_t i, int64_t j, float product, bool sees) {
        if (sees) most = larger(most, by_product ? product : logit(i, j, product));
      });
  }
  uint32_t bits = __reduce_max_sync(kWholeWarp, ordered_bits(by_product ? a.factor * most : most));
  if (threadIdx.x % 32 == 0 && bits > __ldcg(largest)) atomicMax(largest, bits);
}

template <class T, int kDim, int kHigh>
void launch_on_cores(const Logits<T>& a, uint32_t* largest, cudaStream_t stream) {
  constexpr int kRows = 16 * kHigh * kCoreWarps;
  dim3 grid(static_cast<unsigned>(ceil_div(a.length, kRows)), static_cast<unsigned>(a.heads.q),
            static_cast<unsigned>(a.sequences));
  largest_logits_on_cores<T, kDim, kHigh><<<grid, 32 * kCoreWarps, 0, stream>>>(a, largest);
}

// Rows of keys are read in pieces of 16 bytes.
template <class T>
bool cores_find_logits(const Logits<T>& a) {
  return a.width % 8 == 0 && a.heads.dim % 8 == 0 && a.heads.dim <= 256;
}

template <class T>
void launch_logits(const CudaDevice& device, const Logits<T>& a, uint32_t* largest, cudaStream_t stream) {
  const int64_t rows = a.sequences * a.heads.q * a.length;
  if (rows == 0) return;
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    if (takes_logits_on_hopper(device, a)) return launch_logits_on_hopper(a, largest, stream);
  if constexpr (sizeof(T) == 2)
    if (cores_find_logits(a)) {
      if (a.heads.dim <= 64) return launch_on_cores<T, 64, 2>(a, largest, stream);
      if (a.heads.dim <= 128) return launch_on_cores<T, 128, 2>(a, largest, stream);
      return launch_on_cores<T, 256, 1>(a, largest, stream);
    }
  largest_logits<<<static_cast<unsigned>(ceil_div(rows, kWarps)), kThreads, 0, stream>>>(a, largest);
}

__global__ void hand_out_logit(const uint32_t* largest, float* out) {
  *out = *largest == 0xffffffffu ? __uint_as_float(0x7fc00000u) : number_of(*largest);
}

void launch_attention_logits(const CudaCall& call) {
  const Tensor& qkv = call.in[0];
  auto* largest = reinterpret_cast<uint32_t*>(call.workspace);
  check_cuda(cudaMemsetAsync(largest, 0, sizeof(uint32_t), call.stream), "clearing the largest logit");
  LocalHeads heads = local_heads(call.attrs, qkv.shape[2]);
  double scale = attention_scale_of(call.attrs);
  bool alibi = call.attrs.integer_or("alibi", 0) != 0;
  for_cuda_type(qkv.dtype, [&]<class T>() {
    Logits<T> logits{.qkv = qkv.as<T>(),
                     .begins = call.in.size() > 1 ? call.in[1].as<int32_t>() : nullptr,
                     .sequences = qkv.shape[0],
                     .length = qkv.shape[1],
                     .width = qkv.shape[2],
                     .heads = heads,
                     .range = key_range_of(call.attrs),
                     .factor = static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(heads.dim))),
                     .first_head = qkv.global_index(2, 0) / heads.dim,
                     .model_heads = alibi ? call.attrs.integer("heads") : 0};
    launch_logits(call.device, logits, largest, call.stream);
  });
  hand_out_logit<<<1, 1, 0, call.stream>>>(largest, call.out[0].as<float>());
}

}  // namespace

const CudaKernel attention_logits{.launch = launch_attention_logits};

}  // namespace sextant::cuda
