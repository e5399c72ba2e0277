#include "exec/cuda/kernels/token_order.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/units.h"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/spans.cuh"

namespace sextant::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kRoundsOfWarp = 8;
constexpr int kTile = kThreads * kRoundsOfWarp;  // keys of one block; a warp has 256 consecutive ones
static_assert(kTile == kSortTile);

struct Keys {
  int32_t* rows;
  int32_t* places;
};

struct Tokens {
  const int32_t* ids;
  int32_t count;
  int64_t without;
};

__global__ void __launch_bounds__(kThreads)
    find_rows(Tokens tokens, const __grid_constant__ Spans held, int32_t absent, Keys keys) {
  int32_t i = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= tokens.count) return;
  int64_t row = held.local_index(tokens.ids[i]);
  bool counts = row >= 0 && row < absent && tokens.ids[i] != tokens.without;
  keys.rows[i] = counts ? static_cast<int32_t>(row) : absent;
  keys.places[i] = i;
}

__device__ int digit_of(int32_t row, int shift) {
  return (row >> shift) & (kDigits - 1);
}

// counts[digit][tile]: how often a digit stands in a tile.
__global__ void __launch_bounds__(kThreads)
    count_digits(const int32_t* rows, int32_t count, int shift, int32_t* counts) {
  __shared__ int32_t here[kDigits];
  for (int digit = threadIdx.x; digit < kDigits; digit += kThreads) here[digit] = 0;
  __syncthreads();
  int64_t begin = static_cast<int64_t>(blockIdx.x) * kTile, end = min(static_cast<int64_t>(count), begin + kTile);
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) atomicAdd(&here[digit_of(rows[i], shift)], 1);
  __syncthreads();
  for (int digit = threadIdx.x; digit < kDigits; digit += kThreads)
    counts[static_cast<int64_t>(digit) * gridDim.x + blockIdx.x] = here[digit];
}

constexpr int kScanThreads = 1024;

// counts[i] becomes the sum of all before it: where the keys of that digit and tile go. One block; each thread has a
// run of them.
__global__ void __launch_bounds__(kScanThreads) scan_counts(int32_t* counts, int64_t n) {
  __shared__ int32_t of_warp[kScanThreads / 32];
  int64_t each = (n + kScanThreads - 1) / kScanThreads;
  int64_t begin = min(n, threadIdx.x * each), end = min(n, begin + each);
  int32_t sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += counts[i];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int32_t before = sum;  // of this warp's threads up to this one, itself included
  for (int distance = 1; distance < 32; distance *= 2) {
    int32_t other = __shfl_up_sync(kWholeWarp, before, distance);
    if (lane >= distance) before += other;
  }
  if (lane == 31) of_warp[warp] = before;
  __syncthreads();
  before -= sum;
  for (int other = 0; other < warp; ++other) before += of_warp[other];
  for (int64_t i = begin; i < end; ++i) {
    int32_t own = counts[i];
    counts[i] = before;
    before += own;
  }
}

// Keys to where their digits go. Within a tile they are ranked by walking it in order: a warp its 256 keys, 32 at a
// time.
__global__ void __launch_bounds__(kThreads)
    scatter_keys(Keys from, Keys to, int32_t count, int shift, const int32_t* counts) {
  __shared__ int32_t next[kWarps][kDigits];  // first how many a warp has of a digit, then where its next one goes
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int digit = threadIdx.x; digit < kDigits; digit += kThreads)
    for (int w = 0; w < kWarps; ++w) next[w][digit] = 0;
  __syncthreads();
  int64_t begin = static_cast<int64_t>(blockIdx.x) * kTile + warp * 32 * kRoundsOfWarp + lane;
  unsigned peers[kRoundsOfWarp];
  int digits[kRoundsOfWarp];
#pragma unroll
  for (int round = 0; round < kRoundsOfWarp; ++round) {
    int64_t i = begin + round * 32;
    digits[round] = i < count ? digit_of(from.rows[i], shift) : -1;
    peers[round] = __match_any_sync(kWholeWarp, digits[round]);
    if (digits[round] >= 0 && lane == __ffs(static_cast<int>(peers[round])) - 1)
      next[warp][digits[round]] += __popc(peers[round]);
    __syncwarp();
  }
  __syncthreads();
  for (int digit = threadIdx.x; digit < kDigits; digit += kThreads) {
    int32_t place = counts[static_cast<int64_t>(digit) * gridDim.x + blockIdx.x];
    for (int w = 0; w < kWarps; ++w) {
      int32_t own = next[w][digit];
      next[w][digit] = place;
      place += own;
    }
  }
  __syncthreads();
#pragma unroll
  for (int round = 0; round < kRoundsOfWarp; ++round) {
    int64_t i = begin + round * 32;
    int32_t place = digits[round] < 0 ? 0 : next[warp][digits[round]] + __popc(peers[round] & ((1u << lane) - 1));
    __syncwarp();
    if (digits[round] >= 0) {
      to.rows[place] = from.rows[i];
      to.places[place] = from.places[i];
      if (lane == __ffs(static_cast<int>(peers[round])) - 1) next[warp][digits[round]] += __popc(peers[round]);
    }
    __syncwarp();
  }
}

}  // namespace

TokenOrder order_tokens(const TokenList& list) {
  auto part = [&](int64_t i) { return reinterpret_cast<int32_t*>(list.workspace + i * token_list_bytes(list.count)); };
  Keys keys{part(0), part(1)}, others{part(2), part(3)};
  if (list.count == 0) return {keys.rows, keys.places};
  int32_t* counts = part(4);
  auto count = static_cast<int32_t>(list.count), absent = static_cast<int32_t>(list.w.shape[0]);
  auto tiles = static_cast<unsigned>(sort_tiles(list.count));
  find_rows<<<static_cast<unsigned>(ceil_div(list.count, kThreads)), kThreads, 0, list.stream>>>(
      Tokens{list.tokens, count, list.without}, spans_of(list.w, 0), absent, keys);
  int bits = std::bit_width(static_cast<uint32_t>(absent));
  for (int shift = 0; shift < bits; shift += kDigitBits) {
    count_digits<<<tiles, kThreads, 0, list.stream>>>(keys.rows, count, shift, counts);
    scan_counts<<<1, kScanThreads, 0, list.stream>>>(counts, int64_t{kDigits} * tiles);
    scatter_keys<<<tiles, kThreads, 0, list.stream>>>(keys, others, count, shift, counts);
    std::swap(keys, others);
  }
  return {keys.rows, keys.places};
}

}  // namespace sextant::cuda
