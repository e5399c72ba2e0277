// The largest logit by warpgroups. A block takes 128 queries of a head, 64 to a warpgroup, in registers, and goes from
// tile to tile of 128 keys: while one tile is met, the next is copied. Two blocks share a multiprocessor, so that one
// multiplies while the other looks for its largest products.
#include <climits>
#include <cmath>

#include "base/units.h"
#include "exec/cuda/attention/attention_tile.cuh"
#include "exec/cuda/kernels/attention_logits.cuh"
#include "exec/cuda/kernels/hopper.cuh"
#include "exec/cuda/kernels/reduce.cuh"

namespace sextant::cuda {

namespace {

using Bf16Logits = Logits<__nv_bfloat16>;

constexpr int kGroups = 2, kGroupRows = 64, kTileKeys = 128;
constexpr int kLogitThreads = 128 * kGroups, kBlockRows = kGroupRows * kGroups;
constexpr int kPartBytes = kTileKeys * kSwizzleRow;  // 64 columns of a tile

constexpr int tile_bytes(int dim) {
  return dim / kSwizzleElements * kPartBytes;
}
constexpr int logit_shared_bytes(int dim) {
  return 2 * tile_bytes(dim) + kSwizzleGroup;  // the first tile begins on a group's boundary
}

#ifdef SEXTANT_HOPPER

constexpr int kWarpRows = 16, kLogitWarps = kLogitThreads / 32;

// The 16 queries of a warp, of which a thread has parts of rows lane / 4 and 8 below.
template <int kDim>
struct WarpQueries {
  uint32_t q[kDim / 16][4];
  int row[2];   // in the sequence
  int seen[2];  // the first key that each sees; INT_MAX: there is no such query
  int earliest = INT_MAX, latest = 0;

  __device__ WarpQueries(const Bf16Logits& a, int64_t b, int64_t head, int first_row) {
    const __nv_bfloat16* from = a.qkv + b * a.length * a.width + head * a.heads.dim;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      row[half] = first_row + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * half;
      const bool exists = row[half] < a.length;
      seen[half] = exists ? static_cast<int>(a.first_key(b, row[half])) : INT_MAX;
      earliest = min(earliest, seen[half]);
      latest = max(latest, seen[half]);
#pragma unroll
      for (int d = 0; d < kDim / 8; ++d) {
        const int column = 8 * d + core_column();
        q[d / 2][2 * (d % 2) + half] =
            exists && column < a.heads.dim ? pair_at(from + row[half] * a.width + column) : 0;
      }
    }
    earliest = __reduce_min_sync(kWholeWarp, earliest);
    latest = __reduce_max_sync(kWholeWarp, latest);
  }
};

template <int kDim>
__device__ void copy_keys(const __nv_bfloat16* from, const Bf16Logits& a, int first_key, int end, uint8_t* tile) {
  constexpr int kPieces = kDim / 8, kPiecesOfRow = kSwizzleElements / 8;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kTileKeys * kPieces; i += kLogitThreads) {
    const int key = i / kPieces, piece = i % kPieces;
    const bool exists = first_key + key < end && piece * 8 < a.heads.dim;
    const auto* at = exists ? from + (first_key + key) * a.width + piece * 8 : from;
    copy_16(shared_address(tile + piece / kPiecesOfRow * kPartBytes + swizzled_piece(key, piece % kPiecesOfRow)), at,
            exists);
  }
  commit_copies();
}

// Products of the group's queries with the keys of a tile.
template <int kDim>
__device__ void meet_keys(const WarpQueries<kDim>& queries, const uint8_t* tile, float (&products)[64]) {
  begin_products();
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    const uint64_t keys = describe<Major::along>(tile + step / 4 * kPartBytes, 0) + step % 4 * kStepOf16<Major::along>;
    multiply_64x128<Major::along>(products, queries.q[step], keys, step > 0);
  }
  commit_products();
  wait_products<0>();
}

#endif  // SEXTANT_HOPPER

template <int kDim>
__global__ void __launch_bounds__(kLogitThreads, 2)
    largest_logits_by_groups(const __grid_constant__ Bf16Logits a, uint32_t* largest) {
#ifdef SEXTANT_HOPPER
  extern __shared__ uint8_t shared[];
  __shared__ int earliest[kLogitWarps];
  uint8_t* tiles = shared + (kSwizzleGroup - shared_address(shared) % kSwizzleGroup) % kSwizzleGroup;
  const int64_t b = blockIdx.z, head = blockIdx.y;
  const int warp = static_cast<int>(threadIdx.x) / 32, group = warp / 4;
  // Blocks with many keys first, for balance.
  const int first_row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kBlockRows;
  const int end = static_cast<int>(min(a.length, int64_t{first_row} + kBlockRows));
  const int rows_of_warp = first_row + warp * kWarpRows, end_of_group = first_row + (group + 1) * kGroupRows;
  const WarpQueries<kDim> queries(a, b, head, rows_of_warp);
  if (threadIdx.x % 32 == 0) earliest[warp] = queries.earliest;
  __syncthreads();
  int first_of_group = INT_MAX, first_key = INT_MAX;
  for (int i = 0; i < kLogitWarps; ++i) {
    first_key = min(first_key, earliest[i]);
    if (i / 4 == group) first_of_group = min(first_of_group, earliest[i]);
  }
  const __nv_bfloat16* from =
      a.qkv + b * a.length * a.width + (a.heads.q + head * a.heads.kv / a.heads.q) * a.heads.dim;
  const float slope = slope_of(a.first_head + head, a.model_heads);
  // Where no distance counts, logits are ordered as products are, and are made of the largest alone.
  const bool by_product = slope == 0 && a.factor >= 0;
  float most = -INFINITY;
  copy_keys<kDim>(from, a, first_key, end, tiles);
  for (int buffer = 0; first_key < end; first_key += kTileKeys, buffer ^= 1) {
    wait_copies<0>();
    publish_to_products();
    __syncthreads();  // the tile has come, and the one before has been met
    if (first_key + kTileKeys < end)
      copy_keys<kDim>(from, a, first_key + kTileKeys, end, tiles + (buffer ^ 1) * tile_bytes(kDim));
    if (first_key >= end_of_group || first_key + kTileKeys <= first_of_group) continue;
    float products[64];
    meet_keys<kDim>(queries, tiles + buffer * tile_bytes(kDim), products);
    if (by_product && first_key + kTileKeys <= rows_of_warp + 1 && first_key >= queries.latest) {
#pragma unroll
      for (float product : products) most = larger(most, product);
      continue;
    }
#pragma unroll
    for (int i = 0; i < 64; ++i) {
      const int half = i % 4 / 2, key = first_key + i / 4 * 8 + core_column() + i % 2, row = queries.row[half];
      if (queries.seen[half] > key || key > row) continue;
      most = larger(most, by_product ? products[i] : a.factor * products[i] - slope * static_cast<float>(row - key));
    }
  }
  uint32_t bits = __reduce_max_sync(kWholeWarp, ordered_bits(by_product ? a.factor * most : most));
  if (threadIdx.x % 32 == 0 && bits > __ldcg(largest)) atomicMax(largest, bits);
#endif
}

template <int kDim>
void launch_groups(const Bf16Logits& a, uint32_t* largest, cudaStream_t stream) {
  auto* kernel = largest_logits_by_groups<kDim>;
  constexpr int bytes = logit_shared_bytes(kDim);
  (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  dim3 grid(static_cast<unsigned>(ceil_div(a.length, kBlockRows)), static_cast<unsigned>(a.heads.q),
            static_cast<unsigned>(a.sequences));
  kernel<<<grid, kLogitThreads, bytes, stream>>>(a, largest);
}

}  // namespace

// Rows of keys are read in pieces of 16 bytes.
bool takes_logits_on_hopper(const CudaDevice& device, const Bf16Logits& a) {
  return device.capability() == 90 && a.width % 8 == 0 && a.heads.dim % 8 == 0 && a.heads.dim <= 128 &&
         a.length <= INT_MAX - kTileKeys;
}

void launch_logits_on_hopper(const Bf16Logits& a, uint32_t* largest, cudaStream_t stream) {
  a.heads.dim <= 64 ? launch_groups<64>(a, largest, stream) : launch_groups<128>(a, largest, stream);
}

}  // namespace sextant::cuda
