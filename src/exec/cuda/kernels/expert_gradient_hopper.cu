#include "exec/cuda/kernels/expert_ring.cuh"
#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/tensor_map.h"
#include "exec/cuda/kernels/vector.cuh"

namespace sextant::cuda {

namespace {

// One warpgroup copies. Registers of its threads, and of those that multiply: of 168 that each begins with.
constexpr int kSlotCopyThreads = 128, kSlotThreads = kSlotCopyThreads + kMultiplyThreads;
constexpr int kSlotCopyRegisters = 56, kSlotMultiplyRegisters = 224;

// b's rows in the order of slots, and zeros where a last stage reads behind them. Copies by single threads are too slow
// for both operands: with a's alone they keep up.
struct GatherSlots {
  const int32_t *order, *offsets;
  int expert_count, per_row;
  const Bf16* from;
  Bf16* to;
  int64_t width;

  __device__ void operator()(int64_t row, int64_t column) const {
    const int32_t end = offsets[expert_count];
    if (row >= end + kRingDepth) return;
    Packed<Bf16, 8> piece{};
    if (row < end) piece = load<8>(from + static_cast<int64_t>(order[row] / per_row) * width + column);
    store<8>(to + row * width + column, piece);
  }
};

#ifdef SEXTANT_HOPPER

// Rows of the sum are slots: thread t copies the pieces t % 16, of a 128 wide tile of a, of the rows t / 16, t / 16 +
// 8, ….
constexpr int kSlotPieces = 16, kSlotsAtOnce = kSlotCopyThreads / kSlotPieces,
              kSlotsOfThread = kRingDepth / kSlotsAtOnce;
static_assert(kSlotsAtOnce % 8 == 0, "rows of a thread have the same exchange of pieces");

__device__ inline RingTile gradient_tile(int number, int down, int across) {
  int expert = number / (down * across);
  return ring_tile(number, expert, expert * down, down, across);
}

template <class G>
__device__ void fill_slots(Ring& ring, const GroupedGradient<Bf16, G>& x, const CUtensorMap& gathered, int tile_count,
                           int down, int across) {
  constexpr int kBox = kSwizzleElements * kRingDepth;
  const int thread = static_cast<int>(threadIdx.x), piece = thread % kSlotPieces, first_slot = thread / kSlotPieces;
  const int within = piece / 8 * kBox * static_cast<int>(sizeof(Bf16)) + swizzled_piece(first_slot, piece % 8);
  const auto rows = static_cast<int>(x.rows);
  // slot / a_per_row as the upper half of a product, which is exact below 2^32 / a_per_row: a division for each copy
  // would keep the products waiting.
  const uint32_t reciprocal = 0xffffffffu / static_cast<uint32_t>(x.a_per_row) + 1;
  RingFiller filler(ring);
  for (int number = static_cast<int>(blockIdx.x); number < tile_count; number += static_cast<int>(gridDim.x)) {
    const RingTile tile = gradient_tile(number, down, across);
    const int first = ring.offsets[tile.expert], count = ring.offsets[tile.expert + 1] - first;
    const int row = tile.row * kRingRows + piece * 8;
    const Bf16* a = x.a + row;
    const int32_t* order = x.order.order + first + first_slot;
    const auto exists = [&](int k, int i) { return k + first_slot + i * kSlotsAtOnce < count; };
    uint32_t slots[kSlotsOfThread];
    const auto find_slots = [&](int k) {
#pragma unroll
      for (int i = 0; i < kSlotsOfThread; ++i)
        slots[i] = exists(k, i) ? static_cast<uint32_t>(order[k + i * kSlotsAtOnce]) : 0;
    };
    find_slots(0);
    for (int k = 0; k < count; k += kRingDepth) {
      const Bf16* from[kSlotsOfThread];
#pragma unroll
      for (int i = 0; i < kSlotsOfThread; ++i) {
        uint32_t at = x.a_per_row == 1 ? slots[i] : __umulhi(slots[i], reciprocal);
        from[i] = a + static_cast<uint64_t>(at) * static_cast<uint32_t>(rows);
      }
      find_slots(k + kRingDepth);
      const int at = filler.begin();
      RingStage& stage = ring.stages[at];
      if (thread == 0) {
        arrive_expecting(ring.full[at], static_cast<int>(sizeof(stage.b)));
        // Rows of the next expert may follow in b: a has zeros against them.
#pragma unroll
        for (int box = 0; box < kRingColumns / kSwizzleElements; ++box)
          copy_box(stage.b + box * kBox, gathered, ring.full[at], tile.column * kRingColumns + box * kSwizzleElements,
                   first + k, 0);
      }
      const uint32_t to = shared_address(stage.a) + within;
#pragma unroll
      for (int i = 0; i < kSlotsOfThread; ++i)
        copy_16(to + i * kSlotsAtOnce * kSwizzleRow, from[i], exists(k, i) && row < rows);
      filler.end();
    }
  }
  filler.finish();
}

template <class G>
__device__ inline void write_gradient(const GroupedGradient<Bf16, G>& x, const RingTile& tile, int first_row,
                                      const float (&sums)[128]) {
  const auto rows = static_cast<int>(x.rows), columns = static_cast<int>(x.columns);
  const int first_column = tile.column * kRingColumns + static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = tile.row * kRingRows + first_row + half * 8;
    const bool exists = row < rows;
    G* to = x.dw + (static_cast<int64_t>(tile.expert) * rows + row) * columns;
    if constexpr (sizeof(G) == sizeof(Bf16)) {
      if (!x.add) {
        write_bf16_row(exists ? to : nullptr, tile.column * kRingColumns, columns, half, sums);
        continue;
      }
    }
#pragma unroll
    for (int j = 0; j < 32; ++j) {
      const int column = first_column + j * 8;
      if (exists && column < columns)
        write_pair(to + column, {sums[j * 4 + half * 2], sums[j * 4 + half * 2 + 1]}, x.add);
    }
  }
}

template <class G>
__device__ void multiply_slots(Ring& ring, const GroupedGradient<Bf16, G>& x, int tile_count, int down, int across) {
  const int thread = static_cast<int>(threadIdx.x) - kSlotCopyThreads, group = thread / 128;
  const int first_row = thread / 32 * 16 + thread % 32 / 4;
  RingPlace at;
  for (int number = static_cast<int>(blockIdx.x); number < tile_count; number += static_cast<int>(gridDim.x)) {
    const RingTile tile = gradient_tile(number, down, across);
    const int count = ring.offsets[tile.expert + 1] - ring.offsets[tile.expert];
    float sums[128];
    if (count == 0) {
      if (x.add) continue;
#pragma unroll
      for (float& sum : sums) sum = 0;
    } else {
      multiply_stages<Major::across, Major::across>(ring, at, tiles_of(count, kRingDepth), group, sums);
    }
    write_gradient(x, tile, first_row, sums);
  }
}

#endif  // SEXTANT_HOPPER

template <class G>
__global__ void __launch_bounds__(kSlotThreads, 1)
    sum_ring_gradients(GroupedGradient<Bf16, G> x, const __grid_constant__ CUtensorMap gathered) {
#ifdef SEXTANT_HOPPER
  extern __shared__ std::byte memory[];
  Ring& ring = ring_in(memory);
  // Of each stage all that copy arrive, and one of them once more with the bytes of b.
  if (threadIdx.x == 0) open_ring(ring, kSlotCopyThreads + 1);
  for (int e = static_cast<int>(threadIdx.x); e <= x.expert_count; e += kSlotThreads)
    ring.offsets[e] = x.order.offsets[e];
  __syncthreads();
  const int down = tiles_of(x.rows, kRingRows), across = tiles_of(x.columns, kRingColumns);
  const int tile_count = x.expert_count * down * across;
  if (threadIdx.x < kSlotCopyThreads) {
    give_registers_back<kSlotCopyRegisters>();
    fill_slots(ring, x, gathered, tile_count, down, across);
  } else {
    take_registers<kSlotMultiplyRegisters>();
    multiply_slots(ring, x, tile_count, down, across);
  }
#endif
}

}  // namespace

template <class G>
bool takes_gradients_on_hopper(const CudaDevice& device, const GroupedGradient<Bf16, G>& x) {
  return device.capability() == 90 && x.expert_count <= kMostRingExperts && x.rows % 8 == 0 && x.columns % 8 == 0 &&
         x.slots < (int64_t{1} << 32) / x.a_per_row;
}

template <class G>
void sum_gradients_on_hopper(const CudaDevice& device, const GroupedGradient<Bf16, G>& x, Bf16* gathered,
                             cudaStream_t stream) {
  for_row_vectors<8>(
      stream, x.slots, x.columns,
      GatherSlots{x.order.order, x.order.offsets, x.expert_count, x.b_per_row, x.b, gathered, x.columns});
  const CUtensorMap map = tensor_map(gathered, x.columns, x.slots, 1, kRingDepth);
  // Where this fails, so does the launch, which is checked.
  (void)cudaFuncSetAttribute(sum_ring_gradients<G>, cudaFuncAttributeMaxDynamicSharedMemorySize, kRingBytes);
  sum_ring_gradients<G><<<static_cast<unsigned>(device.multiprocessors()), kSlotThreads, kRingBytes, stream>>>(x, map);
}

template bool takes_gradients_on_hopper(const CudaDevice&, const GroupedGradient<Bf16, float>&);
template bool takes_gradients_on_hopper(const CudaDevice&, const GroupedGradient<Bf16, Bf16>&);
template void sum_gradients_on_hopper(const CudaDevice&, const GroupedGradient<Bf16, float>&, Bf16*, cudaStream_t);
template void sum_gradients_on_hopper(const CudaDevice&, const GroupedGradient<Bf16, Bf16>&, Bf16*, cudaStream_t);

}  // namespace sextant::cuda
