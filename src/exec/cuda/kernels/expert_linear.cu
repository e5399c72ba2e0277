#include "base/units.h"
#include "exec/cuda/kernels/expert_products.h"
#include "exec/cuda/kernels/expert_tile.cuh"
#include "exec/cuda/kernels/rows.cuh"
#include "exec/cuda/kernels/slot_order.h"
#include "exec/cuda/kernels/vector.cuh"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"
#include "targets/cuda/expert_sizes.h"

namespace sextant::cuda {

namespace {

enum class Rows : uint8_t { tokens, slots };

// Work of a thread block: rows of one expert. Blocks after the last tile have none.
struct GroupTile {
  int expert;
  int64_t first, count;  // in the order of slots

  __device__ GroupTile(const SlotOrder& order, int expert_count, int tile) : expert(-1), first(0), count(0) {
    if (tile >= order.tiles[expert_count]) return;
    int low = 0, high = expert_count;  // the last expert whose tiles begin no later
    while (high - low > 1) {
      int middle = (low + high) / 2;
      (order.tiles[middle] <= tile ? low : high) = middle;
    }
    expert = low;
    first = order.offsets[expert] + (tile - order.tiles[expert]) * kExpertTileRows;
    count = min(static_cast<int64_t>(kExpertTileRows), order.offsets[expert + 1] - first);
  }
};

// On tensor cores: depth and columns are multiples of 8.
template <Stored kStored>
__global__ void __launch_bounds__(kGroupThreads) multiply_rows_on_cores(GroupedRows<Bf16> x) {
  constexpr TileOrder kB = kStored == Stored::columns_first ? TileOrder::along : TileOrder::across;
  using A = TileShape<TileOrder::along>;
  using B = TileShape<kB>;
  extern __shared__ uint4 memory[];
  const GroupTile tile(x.order, x.expert_count, static_cast<int>(blockIdx.y));
  if (tile.expert < 0) return;
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kGroupColumns;
  const Bf16* b = x.b + tile.expert * x.depth * x.columns;

  // The rows that this thread copies of a are the same for the whole sum.
  const Bf16* rows[A::kPiecesOfThread];
  bool exists[A::kPiecesOfThread];
#pragma unroll
  for (int i = 0; i < A::kPiecesOfThread; ++i) {
    int row = (static_cast<int>(threadIdx.x) + i * kGroupThreads) / (A::kColumns / 8);
    exists[i] = row < tile.count;
    rows[i] = x.a + (exists[i] ? x.a_rows.of(x.order, tile.first + row) : 0) * x.depth;
  }
  auto copy_a = [&](Bf16* to, int64_t k) {
#pragma unroll
    for (int i = 0; i < A::kPiecesOfThread; ++i) {
      int piece = static_cast<int>(threadIdx.x) + i * kGroupThreads;
      int row = piece / (A::kColumns / 8), column = piece % (A::kColumns / 8) * 8;
      bool inside = exists[i] && k + column < x.depth;
      copy_piece(to + row * A::kPitch + column, inside ? rows[i] + k + column : x.a, inside);
    }
  };
  auto copy_b = [&](Bf16* to, int64_t k) {
#pragma unroll
    for (int i = 0; i < B::kPiecesOfThread; ++i) {
      int piece = static_cast<int>(threadIdx.x) + i * kGroupThreads;
      int row = piece / (B::kColumns / 8), column = piece % (B::kColumns / 8) * 8;
      int64_t deep = k + (kB == TileOrder::along ? column : row);
      int64_t wide = first_column + (kB == TileOrder::along ? row : column);
      bool inside = deep < x.depth && wide < x.columns;
      int64_t at = kB == TileOrder::along ? wide * x.depth + deep : deep * x.columns + wide;
      copy_piece(to + row * B::kPitch + column, inside ? b + at : x.b, inside);
    }
  };
  GroupSums sums;
  multiply_group<TileOrder::along, kB>(reinterpret_cast<Bf16*>(memory), x.depth, copy_a, copy_b, sums);
  for_sums(sums, [&](int row, int column, float2 pair) {
    int64_t wide = first_column + column;
    if (row >= tile.count || wide >= x.columns) return;
    Bf16* to = x.c + x.c_rows.of(x.order, tile.first + row) * x.columns + wide;
    *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(pair.x, pair.y);
  });
}

constexpr int kPlainThreads = 256, kPlainColumns = 32, kPlainDepth = 16;

// Any type and size: 128 rows by 32 columns, a thread makes 4×4 of them.
template <class T, Stored kStored>
__global__ void __launch_bounds__(kPlainThreads) multiply_rows(GroupedRows<T> x) {
  __shared__ float a[kPlainDepth][kExpertTileRows + 1], b[kPlainDepth][kPlainColumns + 1];
  const GroupTile tile(x.order, x.expert_count, static_cast<int>(blockIdx.y));
  if (tile.expert < 0) return;
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kPlainColumns;
  const T* weights = x.b + tile.expert * x.depth * x.columns;
  const int row = static_cast<int>(threadIdx.x) / 8 * 4, column = static_cast<int>(threadIdx.x) % 8 * 4;
  float sums[4][4] = {};
  for (int64_t k = 0; k < x.depth; k += kPlainDepth) {
    __syncthreads();  // the piece before this one has been used
    for (int i = threadIdx.x; i < kPlainDepth * kExpertTileRows; i += kPlainThreads) {
      int r = i / kPlainDepth, d = i % kPlainDepth;
      bool inside = r < tile.count && k + d < x.depth;
      a[d][r] = inside ? static_cast<float>(x.a[x.a_rows.of(x.order, tile.first + r) * x.depth + k + d]) : 0.0f;
    }
    for (int i = threadIdx.x; i < kPlainDepth * kPlainColumns; i += kPlainThreads) {
      int c = kStored == Stored::columns_first ? i / kPlainDepth : i % kPlainColumns;
      int d = kStored == Stored::columns_first ? i % kPlainDepth : i / kPlainColumns;
      int64_t wide = first_column + c, deep = k + d;
      int64_t at = kStored == Stored::columns_first ? wide * x.depth + deep : deep * x.columns + wide;
      b[d][c] = wide < x.columns && deep < x.depth ? static_cast<float>(weights[at]) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kPlainDepth; ++d)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] = fmaf(a[d][row + i], b[d][column + j], sums[i][j]);
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      int64_t wide = first_column + column + j;
      if (row + i >= tile.count || wide >= x.columns) continue;
      x.c[x.c_rows.of(x.order, tile.first + row + i) * x.columns + wide] = static_cast<T>(sums[i][j]);
    }
}

template <class G>
__global__ void __launch_bounds__(kGroupThreads) sum_gradients_on_cores(GroupedGradient<Bf16, G> x) {
  constexpr TileOrder kAcross = TileOrder::across;
  using Shape = TileShape<kAcross>;
  extern __shared__ uint4 memory[];
  const int expert = static_cast<int>(blockIdx.z);
  const int64_t first = x.order.offsets[expert], count = x.order.offsets[expert + 1] - first;
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kGroupRows;
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kGroupColumns;
  auto copy = [&](Bf16* to, int64_t k, const Bf16* from, const SlotRows& rows, int64_t begin, int64_t width) {
#pragma unroll
    for (int i = 0; i < Shape::kPiecesOfThread; ++i) {
      int piece = static_cast<int>(threadIdx.x) + i * kGroupThreads;
      int row = piece / (Shape::kColumns / 8), column = piece % (Shape::kColumns / 8) * 8;
      bool inside = k + row < count && begin + column < width;
      const Bf16* at = inside ? from + rows.of(x.order, first + k + row) * width + begin + column : from;
      copy_piece(to + row * Shape::kPitch + column, at, inside);
    }
  };
  GroupSums sums;
  multiply_group<kAcross, kAcross>(
      reinterpret_cast<Bf16*>(memory), count,
      [&](Bf16* to, int64_t k) { copy(to, k, x.a, x.a_rows, first_row, x.rows); },
      [&](Bf16* to, int64_t k) { copy(to, k, x.b, x.b_rows, first_column, x.columns); }, sums);
  for_sums(sums, [&](int row, int column, float2 pair) {
    int64_t r = first_row + row, c = first_column + column;
    if (r < x.rows && c < x.columns) write_pair(x.dw + (expert * x.rows + r) * x.columns + c, pair, x.add);
  });
}

constexpr int kPlainSide = 32;

// Any type and size: 32×32 of a matrix, a thread makes 2×2.
template <class T, class G>
__global__ void __launch_bounds__(kPlainThreads) sum_gradients(GroupedGradient<T, G> x) {
  __shared__ float a[kPlainDepth][kPlainSide + 1], b[kPlainDepth][kPlainSide + 1];
  const int expert = static_cast<int>(blockIdx.z);
  const int64_t first = x.order.offsets[expert], count = x.order.offsets[expert + 1] - first;
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * kPlainSide;
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kPlainSide;
  const int row = static_cast<int>(threadIdx.x) / 16 * 2, column = static_cast<int>(threadIdx.x) % 16 * 2;
  float sums[2][2] = {};
  for (int64_t k = 0; k < count; k += kPlainDepth) {
    __syncthreads();  // the piece before this one has been used
    for (int i = threadIdx.x; i < kPlainDepth * kPlainSide; i += kPlainThreads) {
      int d = i / kPlainSide, at = i % kPlainSide;
      bool exists = k + d < count;
      int64_t place = first + (exists ? k + d : 0);
      bool in_a = exists && first_row + at < x.rows, in_b = exists && first_column + at < x.columns;
      a[d][at] = in_a ? static_cast<float>(x.a[x.a_rows.of(x.order, place) * x.rows + first_row + at]) : 0.0f;
      b[d][at] = in_b ? static_cast<float>(x.b[x.b_rows.of(x.order, place) * x.columns + first_column + at]) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kPlainDepth; ++d)
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) sums[i][j] = fmaf(a[d][row + i], b[d][column + j], sums[i][j]);
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      int64_t r = first_row + row + i, c = first_column + column + j;
      if (r >= x.rows || c >= x.columns) continue;
      G& to = x.dw[(expert * x.rows + r) * x.columns + c];
      to = static_cast<G>(x.add ? static_cast<float>(to) + sums[i][j] : sums[i][j]);
    }
}

// y[token] = the sum of its slots' rows, in their order. places: of slots among the rows; null where rows are slots.
template <class T, int V>
struct SumSlots {
  const T* rows;
  const int32_t* places;
  T* y;
  int64_t width;
  int top_k;

  __device__ void operator()(int64_t token, int64_t column) const {
    float sums[V] = {};
    for (int j = 0; j < top_k; ++j) {
      float x[V];
      int64_t slot = token * top_k + j;
      load_floats(rows + (places ? places[slot] : slot) * width + column, x);
#pragma unroll
      for (int i = 0; i < V; ++i) sums[i] += x[i];
    }
    store_floats(y + token * width + column, sums);
  }
};

template <class Block>
void launch_with_shared(void (*kernel)(Block), const Block& block, dim3 grid, int bytes, cudaStream_t stream) {
  // Where this fails, so does the launch, which is checked.
  (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  kernel<<<grid, kGroupThreads, static_cast<size_t>(bytes), stream>>>(block);
}

template <class T, Stored kStored>
void launch_rows(const CudaDevice& device, const GroupedRows<T>& x, cudaStream_t stream) {
  auto tiles = static_cast<unsigned>(x.order.most_tiles);
  if constexpr (std::is_same_v<T, Bf16>) {
    if (takes_rows_on_hopper(device, x)) return multiply_rows_on_hopper(device, x, kStored, stream);
    if (x.depth % 8 == 0 && x.columns % 8 == 0) {
      constexpr TileOrder kB = kStored == Stored::columns_first ? TileOrder::along : TileOrder::across;
      dim3 grid(static_cast<unsigned>(ceil_div(x.columns, kGroupColumns)), tiles);
      return launch_with_shared(multiply_rows_on_cores<kStored>, x, grid, kGroupShared<TileOrder::along, kB>, stream);
    }
  }
  dim3 grid(static_cast<unsigned>(ceil_div(x.columns, kPlainColumns)), tiles);
  multiply_rows<T, kStored><<<grid, kPlainThreads, 0, stream>>>(x);
}

// Of slots: the weight holds the experts that the attr tells. Of rows: this rank's may be some of them.
SlotExperts slot_experts(const CudaCall& call, int64_t expert_count) {
  const Tensor& chosen = call.in[2];
  SlotExperts experts{.chosen = chosen.as<const int32_t>()};
  if (!call.attrs.has("blocks")) return experts;
  experts.rows = chosen.shape.last();
  experts.experts_of_block = call.attrs.integer("experts") / call.attrs.integer("blocks");
  experts.rows_of_block = experts.rows / (expert_count / experts.experts_of_block);
  return experts;
}

// Order of slots at the start of the workspace; `behind` is the workspace after it.
struct OrderInWorkspace {
  SlotOrder order;
  std::byte* behind;
};

OrderInWorkspace order_of_slots(const CudaCall& call, const SlotExperts& experts, int64_t expert_count) {
  const int64_t slots = call.in[2].count();
  if (!call.attrs.has("in_order"))
    return {sort_slots(experts, slots, expert_count, call.workspace, call.stream),
            call.workspace + SlotOrderSizes(slots, expert_count).end};
  const OrderedSlots ordered = ordered_slots(call.in[3].as<const int32_t>(), slots, call.in[4].as<const int32_t>());
  return {tiles_of_order(ordered, slots, expert_count, call.workspace, call.stream),
          call.workspace + tile_count_bytes(expert_count)};
}

SlotRows rows_of(const CudaCall& call, Rows rows, int64_t top_k) {
  if (rows == Rows::tokens) return {.per_row = static_cast<int>(top_k)};
  return {.in_order = call.attrs.has("in_order")};
}

// in[0] by the weights in[1] of the experts in[2].
template <Rows kIn, Rows kOut, Stored kStored>
void run_rows(const CudaCall& call) {
  const Tensor &w = call.in[1], &experts = call.in[2], &out = call.out[0];
  const int64_t slots = experts.count(), count = local_experts(w.count(), call.in[0].shape.last(), out.shape.last());
  if (slots == 0) return;
  SlotExperts of_slots = slot_experts(call, count);
  const OrderInWorkspace sorted = order_of_slots(call, of_slots, count);
  const auto top_k = static_cast<int>(experts.shape.last());
  if (of_slots.rows > 0)  // a row may have no expert
    check_cuda(cudaMemsetAsync(out.data, 0, static_cast<size_t>(out.count() * size_of(out.dtype)), call.stream),
               "rows without an expert");
  for_cuda_vectors(call.in[0].dtype, out.shape.last(), [&]<class T, int V>() {
    GroupedRows<T> rows{.order = sorted.order,
                        .slots = slots,
                        .expert_count = static_cast<int>(count),
                        .a_rows = rows_of(call, kIn, top_k),
                        .c_rows = rows_of(call, Rows::slots, top_k),
                        .a = call.in[0].as<const T>(),
                        .b = w.as<const T>(),
                        .c = kOut == Rows::slots ? out.as<T>() : reinterpret_cast<T*>(sorted.behind),
                        .depth = call.in[0].shape.last(),
                        .columns = out.shape.last()};
    launch_rows<T, kStored>(call.device, rows, call.stream);
    if (kOut == Rows::tokens)
      for_row_vectors<V>(call.stream, experts.shape.rows(), out.shape.last(),
                         SumSlots<T, V>{rows.c, sorted.order.places, out.as<T>(), out.shape.last(), top_k});
  });
}

template <class T, class G>
void launch_gradient(const CudaCall& call, const GroupedGradient<T, G>& gradient, std::byte* gathered) {
  if constexpr (std::is_same_v<T, Bf16>) {
    if (gradient.slots > 0 && takes_gradients_on_hopper(call.device, gradient))
      return sum_gradients_on_hopper(call.device, gradient, reinterpret_cast<Bf16*>(gathered), call.stream);
    if (gradient.rows % 8 == 0 && gradient.columns % 8 == 0) {
      dim3 grid(static_cast<unsigned>(ceil_div(gradient.columns, kGroupColumns)),
                static_cast<unsigned>(ceil_div(gradient.rows, kGroupRows)),
                static_cast<unsigned>(gradient.expert_count));
      return launch_with_shared(sum_gradients_on_cores<G>, gradient, grid,
                                kGroupShared<TileOrder::across, TileOrder::across>, call.stream);
    }
  }
  dim3 grid(static_cast<unsigned>(ceil_div(gradient.columns, kPlainSide)),
            static_cast<unsigned>(ceil_div(gradient.rows, kPlainSide)), static_cast<unsigned>(gradient.expert_count));
  sum_gradients<T, G><<<grid, kPlainThreads, 0, call.stream>>>(gradient);
}

template <Rows kOutputs, Rows kInputs>
void run_gradient(const CudaCall& call) {
  const Tensor &dy = call.in[0], &x = call.in[1], &experts = call.in[2], &dw = call.out[0];
  const int64_t slots = experts.count(), count = local_experts(dw.count(), x.shape.last(), dy.shape.last());
  const OrderInWorkspace sorted = order_of_slots(call, slot_experts(call, count), count);
  const auto top_k = static_cast<int>(experts.shape.last());
  for_cuda_type(dy.dtype, [&]<class T>() {
    auto launch = [&]<class G>() {
      launch_gradient(call,
                      GroupedGradient<T, G>{.order = sorted.order,
                                            .slots = slots,
                                            .expert_count = static_cast<int>(count),
                                            .a = dy.as<const T>(),
                                            .b = x.as<const T>(),
                                            .a_rows = rows_of(call, kOutputs, top_k),
                                            .b_rows = rows_of(call, kInputs, top_k),
                                            .dw = dw.as<G>(),
                                            .rows = dy.shape.last(),
                                            .columns = x.shape.last(),
                                            .add = call.accumulate()},
                      sorted.behind);
    };
    if (dw.dtype == DType::f32)
      launch.template operator()<float>();
    else
      launch.template operator()<T>();
  });
}

}  // namespace

const CudaKernel expert_up{.launch = run_rows<Rows::tokens, Rows::slots, Stored::columns_first>};
const CudaKernel expert_up_input_gradient{.launch = run_rows<Rows::slots, Rows::tokens, Stored::depth_first>};
const CudaKernel expert_up_weight_gradient{.launch = run_gradient<Rows::slots, Rows::tokens>};
const CudaKernel expert_down{.launch = run_rows<Rows::slots, Rows::tokens, Stored::columns_first>};
const CudaKernel expert_down_input_gradient{.launch = run_rows<Rows::tokens, Rows::slots, Stored::depth_first>};
const CudaKernel expert_down_weight_gradient{.launch = run_gradient<Rows::tokens, Rows::slots>};

// Of ops/expert_rows.cpp: both sides have one row per slot.
const CudaKernel expert_rows{.launch = run_rows<Rows::slots, Rows::slots, Stored::columns_first>};
const CudaKernel expert_rows_input_gradient{.launch = run_rows<Rows::slots, Rows::slots, Stored::depth_first>};
const CudaKernel expert_rows_weight_gradient{.launch = run_gradient<Rows::slots, Rows::slots>};

}  // namespace sextant::cuda
