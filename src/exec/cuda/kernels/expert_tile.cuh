// Tiles of GEMMs on tensor cores whose rows are gathered: 128×128 of the result, 32 of the sum at a time, three stages
// of copies on their way. Eight warps in 2×4 make 64×32 each, in fragments of 16×8.
#pragma once

#include "exec/cuda/kernels/expert_products.h"

#include <cstdint>

namespace sextant::cuda {

constexpr int kGroupThreads = 256;
constexpr int kGroupRows = 128, kGroupColumns = 128, kGroupDepth = 32, kGroupStages = 3;

// An operand's tile in shared memory: along the sum (rows of the result, each with 32 of the sum), or across it (32
// rows of the sum, each with 128 of the result). Padded by 16 bytes, so that reads of eight rows meet in no bank.
enum class TileOrder : uint8_t { along, across };

template <TileOrder kOrder>
struct TileShape {
  static constexpr int kRows = kOrder == TileOrder::along ? 128 : kGroupDepth;
  static constexpr int kColumns = kOrder == TileOrder::along ? kGroupDepth : 128;
  static constexpr int kPitch = kColumns + 8;
  static constexpr int kElements = kRows * kPitch;
  static constexpr int kPieces = kRows * kColumns / 8;  // of 16 bytes
  static constexpr int kPiecesOfThread = kPieces / kGroupThreads;
};

// 16 bytes, or zeros.
__device__ inline void copy_piece(Bf16* to, const Bf16* from, bool exists) {
  auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  int bytes = exists ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

template <bool kTransposed>
__device__ inline void load_matrices(uint32_t (&x)[4], const Bf16* at) {
  auto address = static_cast<uint32_t>(__cvta_generic_to_shared(at));
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address));
}

struct GroupSums {
  float x[4][4][4] = {};  // of 16 rows, of 8 columns, elements as mma.sync has them
};

// sums += a·b over the 32 of a stage.
template <TileOrder kA, TileOrder kB>
__device__ void multiply_stage(const Bf16* a, const Bf16* b, GroupSums& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int first_row = warp / 4 * 64, first_column = warp % 4 * 32;
  const int low = lane % 8, second = lane / 8 % 2 * 8, third = lane / 16 * 8;
#pragma unroll
  for (int k = 0; k < kGroupDepth; k += 16) {
    uint32_t rows[4][4], columns[2][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int row = first_row + i * 16;
      if constexpr (kA == TileOrder::along)
        load_matrices<false>(rows[i], a + (row + second + low) * TileShape<kA>::kPitch + k + third);
      else
        load_matrices<true>(rows[i], a + (k + third + low) * TileShape<kA>::kPitch + row + second);
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      int column = first_column + j * 16;
      if constexpr (kB == TileOrder::along)
        load_matrices<false>(columns[j], b + (column + third + low) * TileShape<kB>::kPitch + k + second);
      else
        load_matrices<true>(columns[j], b + (k + second + low) * TileShape<kB>::kPitch + column + third);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float(&c)[4] = sums.x[i][j];
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
            "{%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(rows[i][0]), "r"(rows[i][1]), "r"(rows[i][2]), "r"(rows[i][3]), "r"(columns[j / 2][j % 2 * 2]),
              "r"(columns[j / 2][j % 2 * 2 + 1]));
      }
  }
}

// All stages: copy_a(tile, k) and copy_b(tile, k) put the thread's copies of 32 of the sum from k on under way.
template <TileOrder kA, TileOrder kB, class CopyA, class CopyB>
__device__ void multiply_group(Bf16* shared, int64_t depth, const CopyA& copy_a, const CopyB& copy_b, GroupSums& sums) {
  constexpr int kStage = TileShape<kA>::kElements + TileShape<kB>::kElements;
  auto begin = [&](int64_t stage) {
    if (stage * kGroupDepth < depth) {
      Bf16* tile = shared + stage % kGroupStages * kStage;
      copy_a(tile, stage * kGroupDepth);
      copy_b(tile + TileShape<kA>::kElements, stage * kGroupDepth);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
#pragma unroll
  for (int stage = 0; stage < kGroupStages - 1; ++stage) begin(stage);
  for (int64_t stage = 0; stage * kGroupDepth < depth; ++stage) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kGroupStages - 2) : "memory");
    __syncthreads();  // all threads' copies have arrived, and the stage that is written next has been used
    begin(stage + kGroupStages - 1);
    const Bf16* tile = shared + stage % kGroupStages * kStage;
    multiply_stage<kA, kB>(tile, tile + TileShape<kA>::kElements, sums);
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
}

// Calls body(row, column, two neighbouring sums) for what the thread has of the tile.
template <class Body>
__device__ void for_sums(const GroupSums& sums, const Body& body) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        body(warp / 4 * 64 + i * 16 + half * 8 + lane / 4, warp % 4 * 32 + j * 8 + lane % 4 * 2,
             float2{sums.x[i][j][half * 2], sums.x[i][j][half * 2 + 1]});
}

template <TileOrder kA, TileOrder kB>
constexpr int kGroupShared = kGroupStages*(TileShape<kA>::kElements + TileShape<kB>::kElements) *
                             static_cast<int>(sizeof(Bf16));

}  // namespace sextant::cuda
