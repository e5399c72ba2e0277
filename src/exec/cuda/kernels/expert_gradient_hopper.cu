#include "exec/cuda/kernels/expert_ring.cuh"
#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/tensor_map.h"
#include "exec/cuda/kernels/vector.cuh"

namespace sextant::cuda {

namespace {

// One warpgroup copies. Registers of its threads, and of those that multiply: of 168 that each begins with.
constexpr int kSlotCopyThreads = 128, kSlotThreads = kSlotCopyThreads + kMultiplyThreads;
constexpr int kSlotCopyRegisters = 56, kSlotMultiplyRegisters = 224;

// Rows in the order of experts, and zeros where a last stage reads behind them. Copies by single threads are too slow
// for both operands: with a's alone they keep up.
struct GatherSlots {
  SlotOrder order;
  int expert_count;
  SlotRows rows;
  const Bf16* from;
  Bf16* to;
  int64_t width;

  __device__ void operator()(int64_t row, int64_t column) const {
    const int32_t end = order.offsets[expert_count];
    if (row >= end + kRingDepth) return;
    Packed<Bf16, 8> piece{};
    if (row < end) piece = load<8>(from + rows.of(order, row) * width + column);
    store<8>(to + row * width + column, piece);
  }
};

// How the ring is filled: b by boxes of gathered rows and a by copies that gather; or both by boxes.
enum class Filled : uint8_t { gathering, by_boxes };

#ifdef SEXTANT_HOPPER

// Rows of the sum are slots: thread t copies the pieces t % 16, of a 128 wide tile of a, of the rows t / 16, t / 16 +
// 8, ….
constexpr int kSlotPieces = 16, kSlotsAtOnce = kSlotCopyThreads / kSlotPieces,
              kSlotsOfThread = kRingDepth / kSlotsAtOnce;
static_assert(kSlotsAtOnce % 8 == 0, "rows of a thread have the same exchange of pieces");

// The tiles of a block. An expert's take as long as it has slots, so those of experts with the most come first, and
// every second round goes through the blocks backwards: each block then has about as much to do. Where threads copy,
// they have no registers for that, and experts come as they are.
template <Filled kFilled>
class GradientTiles {
 public:
  __device__ GradientTiles(const Ring& ring, int expert_count, int down, int across)
      : ring_(ring), count_(expert_count * down * across), down_(down), across_(across) {}

  // The number of the block's tile in this round; none where it is no less than count().
  __device__ int number(int round) const {
    const auto blocks = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
    const bool backwards = kFilled == Filled::by_boxes && round % 2 == 1;
    return round * blocks + (backwards ? blocks - 1 - block : block);
  }
  __device__ int count() const { return count_; }
  __device__ RingTile tile(int number) const {
    const int rank = number / (down_ * across_);
    return ring_tile(number, kFilled == Filled::by_boxes ? ring_.by_load[rank] : rank, rank * down_, down_, across_);
  }

 private:
  const Ring& ring_;
  int count_, down_, across_;
};

// Fills ring.by_load; among experts with as many slots the first one comes first. All threads; offsets are there.
__device__ inline void rank_experts(Ring& ring, int expert_count) {
  for (int e = static_cast<int>(threadIdx.x); e < expert_count; e += static_cast<int>(blockDim.x)) {
    const int here = ring.offsets[e + 1] - ring.offsets[e];
    int before = 0;
    for (int other = 0; other < expert_count; ++other) {
      const int there = ring.offsets[other + 1] - ring.offsets[other];
      before += there > here || (there == here && other < e);
    }
    ring.by_load[before] = e;
  }
}

template <class G>
__device__ void fill_slots(Ring& ring, const GroupedGradient<Bf16, G>& x, const CUtensorMap& gathered,
                           const GradientTiles<Filled::gathering>& tiles) {
  constexpr int kBox = kSwizzleElements * kRingDepth;
  const int thread = static_cast<int>(threadIdx.x), piece = thread % kSlotPieces, first_slot = thread / kSlotPieces;
  const int within = piece / 8 * kBox * static_cast<int>(sizeof(Bf16)) + swizzled_piece(first_slot, piece % 8);
  const auto rows = static_cast<int>(x.rows);
  // slot / per_row as the upper half of a product, which is exact below 2^32 / per_row: a division for each copy would
  // keep the products waiting.
  const auto per_row = static_cast<uint32_t>(x.a_rows.per_row);
  const uint32_t reciprocal = 0xffffffffu / per_row + 1;
  RingFiller filler(ring);
  for (int round = 0, number; (number = tiles.number(round)) < tiles.count(); ++round) {
    const RingTile tile = tiles.tile(number);
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
        uint32_t at = per_row == 1 ? slots[i] : __umulhi(slots[i], reciprocal);
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

__device__ inline void fill_slot_boxes(Ring& ring, const CUtensorMap& a, const CUtensorMap& b,
                                       const GradientTiles<Filled::by_boxes>& tiles) {
  constexpr int kBox = kSwizzleElements * kRingDepth;
  RingPlace at;
  for (int round = 0, number; (number = tiles.number(round)) < tiles.count(); ++round) {
    const RingTile tile = tiles.tile(number);
    const int first = ring.offsets[tile.expert], count = ring.offsets[tile.expert + 1] - first;
    for (int k = 0; k < count; k += kRingDepth, at.next()) {
      wait_barrier(ring.empty[at.stage], at.parity ^ 1);
      RingStage& stage = ring.stages[at.stage];
      uint64_t& barrier = k + kRingDepth <= count ? ring.full[at.stage] : ring.landed[at.stage];
      arrive_expecting(barrier, static_cast<int>(sizeof(RingStage)));
#pragma unroll
      for (int box = 0; box < kRingRows / kSwizzleElements; ++box)
        copy_box(stage.a + box * kBox, a, barrier, tile.row * kRingRows + box * kSwizzleElements, first + k, 0);
#pragma unroll
      for (int box = 0; box < kRingColumns / kSwizzleElements; ++box)
        copy_box(stage.b + box * kBox, b, barrier, tile.column * kRingColumns + box * kSwizzleElements, first + k, 0);
    }
  }
}

// A warp beside the thread that copies: in the last stage of an expert, the rows of the next one become zeros in a.
__device__ inline void clear_tails(Ring& ring, const GradientTiles<Filled::by_boxes>& tiles) {
  constexpr int kBoxPieces = kSwizzleRow / 16, kPieces = kRingRows / kSwizzleElements * kBoxPieces;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  RingPlace at;
  uint32_t parities = 0;  // of `landed`, a bit for each stage
  for (int round = 0, number; (number = tiles.number(round)) < tiles.count(); ++round) {
    const RingTile tile = tiles.tile(number);
    const int count = ring.offsets[tile.expert + 1] - ring.offsets[tile.expert];
    const int stages = tiles_of(count, kRingDepth), rows = count % kRingDepth;
    if (rows > 0) {
      RingPlace last = at;
      last.skip(stages - 1);
      wait_barrier(ring.landed[last.stage], parities >> last.stage & 1);
      parities ^= 1u << last.stage;
      auto* pieces = reinterpret_cast<uint4*>(ring.stages[last.stage].a);
      for (int i = lane; i < (kRingDepth - rows) * kPieces; i += 32) {
        const int row = rows + i / kPieces, box = i % kPieces / kBoxPieces;
        pieces[(box * kRingDepth + row) * kBoxPieces + i % kBoxPieces] = uint4{};
      }
      publish_to_products();
      __syncwarp();
      if (lane == 0) arrive(ring.full[last.stage]);
    }
    at.skip(stages);
  }
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

template <class G, Filled kFilled>
__device__ void multiply_slots(Ring& ring, const GroupedGradient<Bf16, G>& x, const GradientTiles<kFilled>& tiles) {
  const int thread = static_cast<int>(threadIdx.x) - kSlotCopyThreads, group = thread / 128;
  const int first_row = thread / 32 * 16 + thread % 32 / 4;
  RingPlace at;
  for (int round = 0, number; (number = tiles.number(round)) < tiles.count(); ++round) {
    const RingTile tile = tiles.tile(number);
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

template <class G, Filled kFilled>
__global__ void __launch_bounds__(kSlotThreads, 1)
    sum_ring_gradients(GroupedGradient<Bf16, G> x, const __grid_constant__ CUtensorMap a,
                       const __grid_constant__ CUtensorMap b) {
#ifdef SEXTANT_HOPPER
  extern __shared__ std::byte memory[];
  Ring& ring = ring_in(memory);
  // Of each stage all that copy arrive, and one of them once more with the bytes of b; or one alone.
  if (threadIdx.x == 0) open_ring(ring, kFilled == Filled::by_boxes ? 1 : kSlotCopyThreads + 1);
  for (int e = static_cast<int>(threadIdx.x); e <= x.expert_count; e += kSlotThreads)
    ring.offsets[e] = x.order.offsets[e];
  __syncthreads();
  if constexpr (kFilled == Filled::by_boxes) {
    rank_experts(ring, x.expert_count);
    __syncthreads();
  }
  const GradientTiles<kFilled> tiles(ring, x.expert_count, tiles_of(x.rows, kRingRows),
                                     tiles_of(x.columns, kRingColumns));
  if (threadIdx.x < kSlotCopyThreads) {
    give_registers_back<kSlotCopyRegisters>();
    if constexpr (kFilled == Filled::gathering)
      fill_slots(ring, x, b, tiles);
    else if (threadIdx.x == 0)
      fill_slot_boxes(ring, a, b, tiles);
    else if (threadIdx.x / 32 == 1)
      clear_tails(ring, tiles);
  } else {
    take_registers<kSlotMultiplyRegisters>();
    multiply_slots(ring, x, tiles);
  }
#endif
}

}  // namespace

template <class G>
bool takes_gradients_on_hopper(const CudaDevice& device, const GroupedGradient<Bf16, G>& x) {
  return device.capability() == 90 && x.expert_count <= kMostRingExperts && x.rows % 8 == 0 && x.columns % 8 == 0 &&
         x.slots < (int64_t{1} << 32) / x.a_rows.per_row;
}

template <class G>
void sum_gradients_on_hopper(const CudaDevice& device, const GroupedGradient<Bf16, G>& x, Bf16* gathered,
                             cudaStream_t stream) {
  const auto gather = [&](const SlotRows& rows, const Bf16* from, int64_t width) {
    for_row_vectors<8>(stream, x.slots, width, GatherSlots{x.order, x.expert_count, rows, from, gathered, width});
    return tensor_map(gathered, width, x.slots, 1, kRingDepth);
  };
  const auto launch = [&](auto* kernel, const CUtensorMap& a, const CUtensorMap& b) {
    // Where this fails, so does the launch, which is checked.
    (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kRingBytes);
    kernel<<<static_cast<unsigned>(device.multiprocessors()), kSlotThreads, kRingBytes, stream>>>(x, a, b);
  };
  if (x.a_rows.in_order) {
    const CUtensorMap b =
        x.b_rows.in_order ? tensor_map(x.b, x.columns, x.slots, 1, kRingDepth) : gather(x.b_rows, x.b, x.columns);
    launch(sum_ring_gradients<G, Filled::by_boxes>, tensor_map(x.a, x.rows, x.slots, 1, kRingDepth), b);
  } else if (x.b_rows.in_order) {
    launch(sum_ring_gradients<G, Filled::by_boxes>, gather(x.a_rows, x.a, x.rows),
           tensor_map(x.b, x.columns, x.slots, 1, kRingDepth));
  } else {
    const CUtensorMap b = gather(x.b_rows, x.b, x.columns);
    launch(sum_ring_gradients<G, Filled::gathering>, b, b);
  }
}

template bool takes_gradients_on_hopper(const CudaDevice&, const GroupedGradient<Bf16, float>&);
template bool takes_gradients_on_hopper(const CudaDevice&, const GroupedGradient<Bf16, Bf16>&);
template void sum_gradients_on_hopper(const CudaDevice&, const GroupedGradient<Bf16, float>&, Bf16*, cudaStream_t);
template void sum_gradients_on_hopper(const CudaDevice&, const GroupedGradient<Bf16, Bf16>&, Bf16*, cudaStream_t);

}  // namespace sextant::cuda
