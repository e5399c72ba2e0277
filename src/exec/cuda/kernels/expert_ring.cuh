// Shared by the expert GEMMs on Hopper: a ring of tiles in shared memory. One warpgroup fills the ring and two
// multiply, 128×256 of a result at a time and 64 of the sum per stage, until all tiles are done.
#pragma once

#include "exec/cuda/kernels/expert_products.h"
#include "exec/cuda/kernels/hopper.cuh"

namespace sextant::cuda {

constexpr int kRingRows = 128, kRingColumns = 256, kRingDepth = 64, kRingStages = 4;
constexpr int kMultiplyThreads = 2 * 128;  // two warpgroups multiply 64 rows each; those in front of them copy
// So many stages of copies by cp.async are on their way before the first is waited for.
constexpr int kCopiesAhead = 2;
constexpr int kMostRingExperts = 1024;
// Tiles one below the other that are worked on together, so that blocks share what they read through the L2.
constexpr int kTilesAcross = 16;

struct RingStage {
  Bf16 a[kRingRows * kRingDepth];
  Bf16 b[kRingColumns * kRingDepth];
};

struct alignas(1024) Ring {
  RingStage stages[kRingStages];
  uint64_t full[kRingStages], empty[kRingStages];
  uint64_t landed[kRingStages];           // of stages that become full after something is done to them
  int32_t offsets[kMostRingExperts + 1];  // of slots
  int32_t tiles[kMostRingExperts + 1];    // of rows, before each expert
  int32_t by_load[kMostRingExperts];      // experts, those with the most slots first
};
constexpr int kRingBytes = static_cast<int>(sizeof(Ring)) + 1024;  // dynamic shared memory may begin anywhere

// A tile of a result, and of which expert.
struct RingTile {
  int expert, row, column;  // in tiles
};

#ifdef SEXTANT_HOPPER

__device__ inline Ring& ring_in(std::byte* memory) {
  uint32_t address = shared_address(memory);
  return *reinterpret_cast<Ring*>(memory + ((address + 1023) / 1024 * 1024 - address));
}

__device__ inline int tiles_of(int64_t size, int tile) {
  return static_cast<int>((size + tile - 1) / tile);
}

// The tile of this number: those of an expert, a strip of kTilesAcross row tiles after the other, column by column.
__device__ inline RingTile ring_tile(int number, int expert, int before, int down, int across) {
  int within = number - before * across, strip = within / (kTilesAcross * across);
  int height = min(kTilesAcross, down - strip * kTilesAcross), at = within - strip * kTilesAcross * across;
  return {expert, strip * kTilesAcross + at % height, at / height};
}

// Where a thread is in the ring.
struct RingPlace {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void next() {
    if (++stage == kRingStages) stage = 0, parity ^= 1;
  }
  __device__ void skip(int stages) {
    stage += stages;
    parity ^= static_cast<uint32_t>(stage / kRingStages) & 1;
    stage %= kRingStages;
  }
};

// Stages become full when so many threads that copy have arrived.
__device__ inline void open_ring(Ring& ring, int copy_arrivals) {
  for (int i = 0; i < kRingStages; ++i) {
    init_barrier(ring.full[i], copy_arrivals);
    init_barrier(ring.empty[i], 2);
    init_barrier(ring.landed[i], 1);
  }
  publish_barriers();
}

// The side that fills. Copies by cp.async are published some stages late, so that their threads need not wait for each.
class RingFiller {
 public:
  __device__ explicit RingFiller(Ring& ring) : ring_(ring) {}

  // Waits until the next stage is empty.
  __device__ int begin() {
    wait_barrier(ring_.empty[at_.stage], at_.parity ^ 1);
    return at_.stage;
  }
  __device__ void end() {
    commit_copies();
    at_.next();
    if (++begun_ > kCopiesAhead) {
      wait_copies<kCopiesAhead>();
      publish();
    }
  }
  __device__ void finish() {
    wait_copies<0>();
    for (int left = min(begun_, kCopiesAhead); left > 0; --left) publish();
  }

 private:
  __device__ void publish() {
    publish_to_products();
    arrive(ring_.full[published_.stage]);
    published_.next();
  }

  Ring& ring_;
  RingPlace at_, published_;
  int begun_ = 0;
};

// The side that multiplies: the sums of one tile over `stages` stages.
template <Major kA, Major kB>
__device__ inline void multiply_stages(Ring& ring, RingPlace& at, int stages, int group, float (&sums)[128]) {
  // Along the sum a group's 64 rows follow each other; across it they are a box of 64 columns.
  constexpr int kBox = kSwizzleElements * kRingDepth;
  int last = -1;
  for (int i = 0; i < stages; ++i) {
    wait_barrier(ring.full[at.stage], at.parity);
    RingStage& stage = ring.stages[at.stage];
    uint64_t a = describe<kA>(stage.a + group * kBox, 0);
    uint64_t b = describe<kB>(stage.b, kBox * static_cast<int>(sizeof(Bf16)));
    begin_products();
#pragma unroll
    for (int k = 0; k < kRingDepth / 16; ++k)
      multiply_64x256<kA, kB>(sums, a + k * kStepOf16<kA>, b + k * kStepOf16<kB>, i > 0 || k > 0);
    commit_products();
    if (last >= 0) {
      wait_products<1>();
      if (threadIdx.x % 128 == 0) arrive(ring.empty[last]);
    }
    last = at.stage;
    at.next();
  }
  wait_products<0>();
  if (last >= 0 && threadIdx.x % 128 == 0) arrive(ring.empty[last]);
}

// Four neighbouring lanes have two columns each of four groups of eight; afterwards each has the eight of one group.
__device__ inline uint4 transpose_quad(const uint32_t (&v)[4]) {
  const bool upper = threadIdx.x & 2, odd = threadIdx.x & 1;
  uint32_t x = __shfl_xor_sync(0xffffffffu, upper ? v[0] : v[2], 2);
  uint32_t y = __shfl_xor_sync(0xffffffffu, upper ? v[1] : v[3], 2);
  uint4 w = upper ? uint4{x, y, v[2], v[3]} : uint4{v[0], v[1], x, y};
  x = __shfl_xor_sync(0xffffffffu, odd ? w.x : w.y, 1);
  y = __shfl_xor_sync(0xffffffffu, odd ? w.z : w.w, 1);
  return odd ? uint4{x, w.y, y, w.w} : uint4{w.x, x, w.z, y};
}

__device__ inline uint32_t as_pair(float low, float high) {
  __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<uint32_t*>(&pair);
}

// The upper (half 0) or lower of the thread's two rows, 16 bytes at a time; a null `to` is not written.
__device__ inline void write_bf16_row(Bf16* to, int first_column, int columns, int half, const float (&sums)[128]) {
  const int lane_column = first_column + static_cast<int>(threadIdx.x) % 4 * 8;
#pragma unroll
  for (int j = 0; j < 32; j += 4) {
    uint32_t pairs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = as_pair(sums[(j + i) * 4 + half * 2], sums[(j + i) * 4 + half * 2 + 1]);
    uint4 piece = transpose_quad(pairs);  // by all lanes
    int column = lane_column + j * 8;
    if (to && column < columns) *reinterpret_cast<uint4*>(to + column) = piece;
  }
}

#endif  // SEXTANT_HOPPER

}  // namespace sextant::cuda
