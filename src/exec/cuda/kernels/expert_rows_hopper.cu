#include "exec/cuda/kernels/expert_ring.cuh"
#include "exec/cuda/kernels/tensor_map.h"

namespace sextant::cuda {

namespace {

// One warpgroup copies. Registers of its threads, and of those that multiply: of 168 that each begins with.
constexpr int kRowCopyThreads = 128, kProductThreads = kRowCopyThreads + kMultiplyThreads;
constexpr int kRowCopyRegisters = 56, kRowMultiplyRegisters = 224;

#ifdef SEXTANT_HOPPER

// The rows of one tile.
struct RowsOfTile {
  int first, count;  // in the order of slots

  __device__ RowsOfTile(const Ring& ring, const RingTile& tile)
      : first(ring.offsets[tile.expert] + tile.row * kRingRows),
        count(min(kRingRows, ring.offsets[tile.expert + 1] - first)) {}
};

__device__ inline RingTile find_tile(const Ring& ring, int number, int expert_count, int across) {
  int low = 0, high = expert_count;  // the last expert whose tiles begin no later
  while (high - low > 1) {
    int middle = (low + high) / 2;
    (ring.tiles[middle] * across <= number ? low : high) = middle;
  }
  return ring_tile(number, low, ring.tiles[low], ring.tiles[low + 1] - ring.tiles[low], across);
}

// Thread t copies pieces t % 8 of the rows t / 8, t / 8 + 16, ….
constexpr int kRowPieces = kSwizzleElements / 8, kRowsAtOnce = kRowCopyThreads / kRowPieces;
constexpr int kRowsOfThread = kRingRows / kRowsAtOnce;

// Of the weight.
template <Stored kStored>
__device__ inline void copy_weight(Ring& ring, int at, const CUtensorMap& weights, const RingTile& tile, int k) {
  constexpr int kBoxes = kStored == Stored::columns_first ? 1 : kRingColumns / kSwizzleElements;
  RingStage& stage = ring.stages[at];
#pragma unroll
  for (int box = 0; box < kBoxes; ++box) {
    if constexpr (kStored == Stored::columns_first)
      copy_box(stage.b, weights, ring.full[at], k, tile.column * kRingColumns, tile.expert);
    else
      copy_box(stage.b + box * kSwizzleElements * kRingDepth, weights, ring.full[at],
               tile.column * kRingColumns + box * kSwizzleElements, k, tile.expert);
  }
}

template <Stored kStored>
__device__ void fill_rows(Ring& ring, const GroupedRows<Bf16>& x, const CUtensorMap& weights, int tile_count,
                          int across) {
  const int thread = static_cast<int>(threadIdx.x), piece = thread % kRowPieces, first_row = thread / kRowPieces;
  const auto depth = static_cast<int>(x.depth);
  RingFiller filler(ring);
  for (int number = static_cast<int>(blockIdx.x); number < tile_count; number += static_cast<int>(gridDim.x)) {
    const RingTile tile = find_tile(ring, number, x.expert_count, across);
    const RowsOfTile rows(ring, tile);
    const Bf16* from[kRowsOfThread];
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) {
      // Rows after the last one read the last one; their results are not written.
      int row = min(first_row + i * kRowsAtOnce, rows.count - 1);
      from[i] = x.a + x.a_rows.of(x.order, rows.first + row) * depth + piece * 8;
    }
    for (int k = 0; k < depth; k += kRingDepth) {
      const int at = filler.begin();
      RingStage& stage = ring.stages[at];
      if (thread == 0) {
        arrive_expecting(ring.full[at], static_cast<int>(sizeof(stage.b)));
        copy_weight<kStored>(ring, at, weights, tile, k);
      }
      const uint32_t to = shared_address(stage.a) + swizzled_piece(first_row, piece);
#pragma unroll
      for (int i = 0; i < kRowsOfThread; ++i) copy_16(to + i * kRowsAtOnce * kSwizzleRow, from[i] + k, true);
      filler.end();
    }
  }
  filler.finish();
}

// Rows in the order of experts are boxes as weights are, and one thread copies. Behind the last row of an expert stand
// those of the next one: what they become is not written.
template <Stored kStored>
__device__ void fill_boxes(Ring& ring, const GroupedRows<Bf16>& x, const CUtensorMap& weights, const CUtensorMap& rows,
                           int tile_count, int across) {
  const auto depth = static_cast<int>(x.depth);
  RingPlace place;
  for (int number = static_cast<int>(blockIdx.x); number < tile_count; number += static_cast<int>(gridDim.x)) {
    const RingTile tile = find_tile(ring, number, x.expert_count, across);
    const int first = RowsOfTile(ring, tile).first;
    for (int k = 0; k < depth; k += kRingDepth, place.next()) {
      const int at = place.stage;
      wait_barrier(ring.empty[at], place.parity ^ 1);
      arrive_expecting(ring.full[at], static_cast<int>(sizeof(RingStage)));
      copy_box(ring.stages[at].a, rows, ring.full[at], k, first, 0);
      copy_weight<kStored>(ring, at, weights, tile, k);
    }
  }
}

template <Stored kStored>
__device__ void multiply_tiles(Ring& ring, const GroupedRows<Bf16>& x, int tile_count, int across) {
  constexpr Major kB = kStored == Stored::columns_first ? Major::along : Major::across;
  const int thread = static_cast<int>(threadIdx.x) - kRowCopyThreads, group = thread / 128;
  const int first_row = thread / 32 * 16 + thread % 32 / 4;
  const int stages = static_cast<int>(x.depth) / kRingDepth;
  RingPlace at;
  for (int number = static_cast<int>(blockIdx.x); number < tile_count; number += static_cast<int>(gridDim.x)) {
    const RingTile tile = find_tile(ring, number, x.expert_count, across);
    const RowsOfTile rows(ring, tile);
    int64_t rows_of_c[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = first_row + half * 8;
      rows_of_c[half] = row < rows.count ? x.c_rows.of(x.order, rows.first + row) : -1;
    }
    float sums[128];
    multiply_stages<Major::along, kB>(ring, at, stages, group, sums);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Bf16* to = rows_of_c[half] < 0 ? nullptr : x.c + rows_of_c[half] * x.columns;
      write_bf16_row(to, tile.column * kRingColumns, static_cast<int>(x.columns), half, sums);
    }
  }
}

#endif  // SEXTANT_HOPPER

// kRows: how the rows of a stand; `rows` is their map where they are in order.
enum class RowsOfA : uint8_t { gathered, in_order };

template <Stored kStored, RowsOfA kRows>
__global__ void __launch_bounds__(kProductThreads, 1)
    multiply_ring_rows(GroupedRows<Bf16> x, const __grid_constant__ CUtensorMap weights,
                       const __grid_constant__ CUtensorMap rows) {
#ifdef SEXTANT_HOPPER
  extern __shared__ std::byte memory[];
  Ring& ring = ring_in(memory);
  // Of each stage all that copy arrive, and one of them once more with the bytes of weights; or one alone.
  if (threadIdx.x == 0) open_ring(ring, kRows == RowsOfA::in_order ? 1 : kRowCopyThreads + 1);
  for (int e = static_cast<int>(threadIdx.x); e <= x.expert_count; e += kProductThreads)
    ring.offsets[e] = x.order.offsets[e], ring.tiles[e] = x.order.tiles[e];
  __syncthreads();
  const int across = tiles_of(x.columns, kRingColumns), tile_count = ring.tiles[x.expert_count] * across;
  if (threadIdx.x < kRowCopyThreads) {
    give_registers_back<kRowCopyRegisters>();
    if constexpr (kRows == RowsOfA::gathered)
      fill_rows<kStored>(ring, x, weights, tile_count, across);
    else if (threadIdx.x == 0)
      fill_boxes<kStored>(ring, x, weights, rows, tile_count, across);
  } else {
    take_registers<kRowMultiplyRegisters>();
    multiply_tiles<kStored>(ring, x, tile_count, across);
  }
#endif
}

template <Stored kStored, RowsOfA kRows>
void launch_ring_rows(const CudaDevice& device, const GroupedRows<Bf16>& x, cudaStream_t stream) {
  const CUtensorMap map = kStored == Stored::columns_first
                              ? tensor_map(x.b, x.depth, x.columns, x.expert_count, kRingColumns)
                              : tensor_map(x.b, x.columns, x.depth, x.expert_count, kRingDepth);
  const CUtensorMap rows = kRows == RowsOfA::in_order ? tensor_map(x.a, x.depth, x.slots, 1, kRingRows) : map;
  // Where this fails, so does the launch, which is checked.
  auto* kernel = multiply_ring_rows<kStored, kRows>;
  (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kRingBytes);
  kernel<<<static_cast<unsigned>(device.multiprocessors()), kProductThreads, kRingBytes, stream>>>(x, map, rows);
}

template <Stored kStored>
void launch_ring_rows(const CudaDevice& device, const GroupedRows<Bf16>& x, cudaStream_t stream) {
  if (x.a_rows.in_order)
    launch_ring_rows<kStored, RowsOfA::in_order>(device, x, stream);
  else
    launch_ring_rows<kStored, RowsOfA::gathered>(device, x, stream);
}

}  // namespace

bool takes_rows_on_hopper(const CudaDevice& device, const GroupedRows<Bf16>& x) {
  return device.capability() == 90 && x.expert_count <= kMostRingExperts && x.depth % kRingDepth == 0 &&
         x.columns % 8 == 0;
}

void multiply_rows_on_hopper(const CudaDevice& device, const GroupedRows<Bf16>& x, Stored stored, cudaStream_t stream) {
  if (stored == Stored::columns_first)
    launch_ring_rows<Stored::columns_first>(device, x, stream);
  else
    launch_ring_rows<Stored::depth_first>(device, x, stream);
}

}  // namespace sextant::cuda
