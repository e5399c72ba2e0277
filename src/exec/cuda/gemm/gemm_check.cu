#include "exec/cuda/gemm/gemm_check.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cfloat>
#include <cmath>

#include "base/error.h"
#include "base/units.h"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/runtime/check.h"
#include "exec/gemm_fault.h"
#include "targets/cuda/fp8_sizes.h"
#include "targets/cuda/gemm_check_sizes.h"

namespace sextant {

namespace {

using cuda::block_sum;
using cuda::SuspectRows;
using cuda::warp_sum;

constexpr int kCheckThreads = 256;
constexpr int kCheckWarps = kCheckThreads / 32;
constexpr int kJudgeThreads = 1024, kJudgeWarps = kJudgeThreads / 32;
constexpr int64_t kLinesOfSlice = 1024;  // that a block of sums over columns reads
constexpr int kLinesAtOnce = 8;          // by one warp, so that weights are read once for all of them

enum class ScaleOrder : uint8_t {
  none,
  tensor,  // one number
  tiles,   // [along the line / 128, lines]
  blocks,  // [lines / 128, along the line / 128], in rows of `scale_stride`
};

// A matrix as it is stored: `lines` of `width` numbers.
struct StoredLines {
  const void* data;
  DType dtype;
  int64_t stride, lines, width;
  ScaleOrder order = ScaleOrder::none;
  const float* scales = nullptr;
  int64_t scale_stride = 0;

  __device__ double scale(int64_t line, int64_t i) const {
    switch (order) {
      case ScaleOrder::none:
        return 1;
      case ScaleOrder::tensor:
        return scales[0];
      case ScaleOrder::tiles:
        return scales[i / cuda::kFp8Tile * lines + line];
      case ScaleOrder::blocks:
        return scales[line / cuda::kFp8Tile * scale_stride + i / cuda::kFp8Tile];
    }
    return 1;
  }
  template <class T>
  __device__ double number(int64_t line, int64_t i) const {
    double raw = static_cast<float>(static_cast<const T*>(data)[line * stride + i]);
    return order == ScaleOrder::none ? raw : raw * scale(line, i);
  }
  // For what runs seldom: the type is looked at for every number.
  __device__ double any_number(int64_t line, int64_t i) const {
    switch (dtype) {
      case DType::bf16:
        return number<__nv_bfloat16>(line, i);
      case DType::f16:
        return number<__half>(line, i);
      case DType::e4m3:
        return number<__nv_fp8_e4m3>(line, i);
      case DType::e5m2:
        return number<__nv_fp8_e5m2>(line, i);
      default:
        return number<float>(line, i);
    }
  }
};

template <class Body>
void for_operand_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::bf16:
      return body.template operator()<__nv_bfloat16>();
    case DType::f16:
      return body.template operator()<__half>();
    case DType::e4m3:
      return body.template operator()<__nv_fp8_e4m3>();
    case DType::e5m2:
      return body.template operator()<__nv_fp8_e5m2>();
    default:
      return body.template operator()<float>();
  }
}

// Factors of the numbers of a line (or column), and of their squares; when `squares` is null, the factor of a square is
// 1.
struct Weights {
  const double* sums;
  const double* squares;
};

struct LineSums {
  double* sums;
  double* squares;
};

// SplitMix64's mixing: one sign for every column, without a state.
__device__ double sign_of(uint64_t seed, int64_t column) {
  uint64_t x = seed + 0x9e3779b97f4a7c15ULL * static_cast<uint64_t>(column + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return ((x ^ (x >> 31)) & 1) != 0 ? 1.0 : -1.0;
}

__global__ void __launch_bounds__(kCheckThreads) draw_signs(uint64_t seed, double* signs, int64_t count) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kCheckThreads + threadIdx.x;
  if (i < count) signs[i] = sign_of(seed, i);
}

// V neighbouring numbers of a line, read at once.
template <class T, int V>
struct alignas(sizeof(T) * V) Neighbours {
  T numbers[V];
};

// Of V numbers at once where they fill a read of 16 bytes, or 8 of fp8. Tiles of scales are multiples of that.
template <class T>
constexpr int kNeighbours = sizeof(T) == 4 ? 4 : 8;

template <class T>
bool has_neighbours(const StoredLines& x) {
  constexpr int64_t wide = kNeighbours<T>;
  return x.width % wide == 0 && x.stride % wide == 0 &&
         reinterpret_cast<uintptr_t>(x.data) % sizeof(Neighbours<T, kNeighbours<T>>) == 0;
}

template <class T, int V>
__device__ void read_numbers(const StoredLines& x, int64_t line, int64_t i, double (&v)[V]) {
  const auto raw = *reinterpret_cast<const Neighbours<T, V>*>(static_cast<const T*>(x.data) + line * x.stride + i);
  const double scale = x.order == ScaleOrder::none ? 1 : x.scale(line, i);
#pragma unroll
  for (int j = 0; j < V; ++j) v[j] = static_cast<double>(static_cast<float>(raw.numbers[j])) * scale;
}

// kLines lines from `first` on, by a warp; those behind the last say what the last says.
template <class T, int V, int kLines>
__device__ void sum_by_warp(const StoredLines& x, const Weights& w, int64_t first, double (&sums)[kLines],
                            double (&squares)[kLines]) {
  for (int64_t i = threadIdx.x % 32 * V; i < x.width; i += 32 * V) {
    double of_sums[V], of_squares[V];
#pragma unroll
    for (int j = 0; j < V; ++j) {
      of_sums[j] = w.sums[i + j];
      of_squares[j] = w.squares ? w.squares[i + j] : 1;
    }
#pragma unroll
    for (int line = 0; line < kLines; ++line) {
      double v[V];
      read_numbers<T, V>(x, min(first + line, x.lines - 1), i, v);
#pragma unroll
      for (int j = 0; j < V; ++j) {
        sums[line] += v[j] * of_sums[j];
        squares[line] += v[j] * v[j] * of_squares[j];
      }
    }
  }
#pragma unroll
  for (int line = 0; line < kLines; ++line) {
    sums[line] = warp_sum(sums[line]);
    squares[line] = warp_sum(squares[line]);
  }
}

template <int kLines>
__device__ int64_t first_line_of_warp() {
  return (static_cast<int64_t>(blockIdx.x) * kCheckWarps + threadIdx.x / 32) * kLines;
}

template <class T, int V, int kLines>
__global__ void __launch_bounds__(kCheckThreads)
    sum_lines(const __grid_constant__ StoredLines x, Weights w, LineSums out) {
  const int64_t first = first_line_of_warp<kLines>();
  if (first >= x.lines) return;
  double sums[kLines] = {}, squares[kLines] = {};
  sum_by_warp<T, V>(x, w, first, sums, squares);
#pragma unroll
  for (int line = 0; line < kLines; ++line)
    if (threadIdx.x % 32 == line && first + line < x.lines) {
      out.sums[first + line] = sums[line];
      out.squares[first + line] = squares[line];
    }
}

// A thread sums V columns of every 8th line of a slice; these sums are added up in any order. `out` holds zeros before.
template <class T, int V>
__global__ void __launch_bounds__(kCheckThreads)
    sum_columns_of(const __grid_constant__ StoredLines x, Weights w, LineSums out) {
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x % 32) * V;
  if (column >= x.width) return;
  const int64_t begin = blockIdx.y * kLinesOfSlice, end = min(x.lines, begin + kLinesOfSlice);
  double sums[V] = {}, squares[V] = {};
#pragma unroll 2
  for (int64_t line = begin + threadIdx.x / 32; line < end; line += kCheckWarps) {
    double v[V];
    read_numbers<T, V>(x, line, column, v);
    const double of_sums = w.sums[line], of_squares = w.squares ? w.squares[line] : 1;
#pragma unroll
    for (int j = 0; j < V; ++j) {
      sums[j] += v[j] * of_sums;
      squares[j] += v[j] * v[j] * of_squares;
    }
  }
#pragma unroll
  for (int j = 0; j < V; ++j) {
    atomicAdd(out.sums + column + j, sums[j]);
    atomicAdd(out.squares + column + j, squares[j]);
  }
}

// Everything that rows are judged by.
struct Judged {
  StoredLines a, b, c;    // as stored
  bool a_along, b_along;  // whether their lines lie along k
  const void* bias;       // null: none
  DType bias_dtype;
  bool adds;
  int64_t m, n, k;
  const double *signs, *b_squares, *expected, *squares, *before, *before_squares;
  double roundoff, roundings;  // of the sums: u and t
  double narrowing;            // u of what is stored
  double least, largest;       // what underflow may lose, and the largest number of the type
  SuspectRows* suspects;
  DeviceGemmFault* fault;
  int32_t op;

  __device__ double a_at(int64_t row, int64_t i) const { return a_along ? a.any_number(row, i) : a.any_number(i, row); }
  __device__ double b_at(int64_t i, int64_t column) const {
    return b_along ? b.any_number(column, i) : b.any_number(i, column);
  }
  __device__ double bias_at(int64_t column) const {
    if (!bias) return 0;
    return StoredLines{bias, bias_dtype, 0, 1, n}.any_number(0, column);
  }
  __device__ void report(const DeviceGemmFault& found) const {
    if (atomicExch(&suspects->reported, 1) != 0 || fault->found != 0) return;
    *fault = found;
    __threadfence_system();
  }
};

// c·x of a row, and its squares.
struct RowSums {
  double sum, squares;
};

__device__ bool looks_wrong(const Judged& j, int64_t row, const RowSums& got) {
  double before = j.adds ? j.before[row] : 0, before_squares = j.adds ? j.before_squares[row] : 0;
  double norms = sqrt(j.squares[row]) + sqrt(got.squares) + sqrt(j.suspects->bias_squares) + sqrt(before_squares);
  double own = static_cast<double>(j.n + j.k);
  double usual = kSpreadOfRow * ((j.roundoff * sqrt(j.roundings) + kRoundoffOfCheck * sqrt(own)) * norms +
                                 j.narrowing * sqrt(got.squares)) +
                 static_cast<double>(j.n) * j.least;
  return !(fabs(got.sum - (j.expected[row] + j.suspects->bias + before)) <= usual);
}

template <class T, int V, int kLines>
__global__ void __launch_bounds__(kCheckThreads) find_suspects(const __grid_constant__ Judged j) {
  const int64_t first = first_line_of_warp<kLines>();
  if (first >= j.m) return;
  double sums[kLines] = {}, squares[kLines] = {};
  sum_by_warp<T, V>(j.c, Weights{j.signs, nullptr}, first, sums, squares);
#pragma unroll
  for (int line = 0; line < kLines; ++line) {
    const int64_t row = first + line;
    if (threadIdx.x % 32 != line || row >= j.m || !looks_wrong(j, row, {sums[line], squares[line]})) continue;
    int at = atomicAdd(&j.suspects->count, 1);
    if (at < cuda::kMostSuspects) j.suspects->rows[at] = static_cast<int32_t>(row);
  }
}

// An element of c computed in f64, and the sum of the magnitudes of its terms.
struct JudgedSum {
  double exact, size;
};

// (1) of exec/gemm_fault.h. A lane has a column, and the warps of a block share its terms.
__device__ void judge_elements(const Judged& j, int64_t row) {
  __shared__ JudgedSum parts[kJudgeWarps][32];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + lane;
  JudgedSum sum{};
  if (column < j.n) {
#pragma unroll 4
    for (int64_t i = warp; i < j.k; i += kJudgeWarps) {
      const double term = j.a_at(row, i) * j.b_at(i, column);
      sum.exact += term;
      sum.size += fabs(term);
    }
  }
  parts[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= j.n) return;
  double exact = j.bias_at(column), size = fabs(exact);
  for (auto& part : parts) {
    exact += part[lane].exact;
    size += part[lane].size;
  }
  if (!(size < j.largest / 2)) return;
  double got = j.c.any_number(row, column), t = j.roundings * j.roundoff;
  double allowed = (t / (1 - t) + 2 * static_cast<double>(j.k + 4) * kRoundoffOfCheck) * size +
                   j.narrowing * (fabs(exact) + size * t) + j.least;
  if (fabs(got - exact) <= allowed) return;
  j.report({1, j.op, row, column, got, exact, allowed});
}

// (2), by the first block.
template <class T>
__device__ void judge_sum(const Judged& j, int64_t row) {
  if (blockIdx.x != 0) return;
  double terms = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < j.k; i += kJudgeThreads) terms += fabs(j.a_at(row, i)) * sqrt(j.b_squares[i]);
  terms = block_sum<kJudgeThreads>(terms);
  if (threadIdx.x >= 32) return;
  double sum[1] = {}, squares[1] = {};
  sum_by_warp<T, 1>(j.c, Weights{j.signs, nullptr}, row, sum, squares);
  if (threadIdx.x != 0) return;
  double norms = terms + sqrt(j.suspects->bias_squares) + sqrt(j.before_squares[row]);
  double all = sqrt(static_cast<double>(j.n)) * norms;
  if (!(all < j.largest / 2)) return;
  double t = j.roundings * j.roundoff, expected = j.expected[row] + j.suspects->bias + j.before[row];
  double allowed = kHoeffding * (t / (1 - t) * norms + j.narrowing * norms * (1 + t)) +
                   4 * static_cast<double>(j.n + j.k + 4) * kRoundoffOfCheck * all + static_cast<double>(j.n) * j.least;
  if (fabs(sum[0] - expected) <= allowed) return;
  j.report({1, j.op, row, -1, sum[0], expected, allowed});
}

template <class T>
__global__ void __launch_bounds__(kJudgeThreads) judge_suspects(const __grid_constant__ Judged j) {
  if (static_cast<int>(blockIdx.y) >= j.suspects->count) return;
  int64_t row = j.suspects->rows[blockIdx.y];
  j.adds ? judge_sum<T>(j, row) : judge_elements(j, row);
}

template <class Bits>
__device__ void flip_sign(void* data, int64_t at) {
  static_cast<Bits*>(data)[at] ^= static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
}

// The sign of the largest number of the first row: a bit of one near zero is of no significance. One block.
__global__ void __launch_bounds__(kCheckThreads) flip_largest(const __grid_constant__ StoredLines c) {
  __shared__ double sizes[kCheckThreads];
  __shared__ int64_t columns[kCheckThreads];
  double size = -1;
  int64_t column = 0;
  for (int64_t i = threadIdx.x; i < c.width; i += kCheckThreads)
    if (double v = fabs(c.any_number(0, i)); v > size) {
      size = v;
      column = i;
    }
  sizes[threadIdx.x] = size;
  columns[threadIdx.x] = column;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int other = 1; other < kCheckThreads; ++other)
    if (sizes[other] > size) {
      size = sizes[other];
      column = columns[other];
    }
  void* data = const_cast<void*>(c.data);
  c.dtype == DType::f32 ? flip_sign<uint32_t>(data, column) : flip_sign<uint16_t>(data, column);
}

unsigned blocks_for(int64_t count, int64_t each) {
  return static_cast<unsigned>(ceil_div(count, each));
}

// Calls body.template operator()<V, kLines>(): several lines by a warp where there are enough for all warps.
template <class T, class Body>
void for_lines_at_once(const StoredLines& x, const Body& body) {
  constexpr int64_t kManyLines = 8192;
  if (!has_neighbours<T>(x))
    body.template operator()<1, 1>();
  else if (x.lines < kManyLines)
    body.template operator()<kNeighbours<T>, 1>();
  else
    body.template operator()<kNeighbours<T>, kLinesAtOnce>();
}

struct TypeRounding {
  double roundoff;
  double least;  // half of the smallest number
  double largest;
};

TypeRounding rounding_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return {0x1p-8, 0x1p-134, 3.3895313892515355e38};
    case DType::f16:
      return {0x1p-11, 0x1p-25, 65504};
    default:
      return {0x1p-24, 0x1p-150, static_cast<double>(FLT_MAX)};
  }
}

struct SumRounding {
  double roundoff, roundings;
};

SumRounding sums_of(const GemmShape& shape) {
  auto k = static_cast<double>(shape.k);
  if (shape.scales != GemmScales::none) return {0x1p-13, k / 32 + 32};
  return {shape.in == DType::f32 ? 0x1p-24 : 0x1p-23, k + 4};
}

StoredLines lines_of(const void* data, DType dtype, int64_t lines, int64_t width, int64_t stride) {
  return {.data = data, .dtype = dtype, .stride = stride > 0 ? stride : width, .lines = lines, .width = width};
}

// A check of one GEMM: where its numbers lie, and what it launches.
class GemmInspection {
 public:
  GemmInspection(const GemmShape& shape, const GemmOperands& operands, const DeviceGemmCheck& check,
                 cudaStream_t stream)
      : shape_(shape), operands_(operands), check_(check), at_(shape.m, shape.n, shape.k), stream_(stream) {}

  bool adds() const { return operands_.sum == SumState::running; }

  StoredLines result() const {
    bool in_aux = shape_.epilogue == GemmEpilogue::gelu || shape_.epilogue == GemmEpilogue::gelu_bias;
    return lines_of(in_aux ? operands_.aux : operands_.c, shape_.out, shape_.m, shape_.n, shape_.c_stride);
  }

  void begin() const {
    draw_signs<<<blocks_for(shape_.n, kCheckThreads), kCheckThreads, 0, stream_>>>(check_.signs, doubles(0), shape_.n);
    if (adds()) lines(result(), {doubles(0), nullptr}, {doubles(at_.before), doubles(at_.before_squares)});
  }

  void end() const {
    StoredLines a = first(), b = second();
    bool a_along = shape_.a_order == MatrixOrder::as_is, b_along = shape_.b_order == MatrixOrder::transposed;
    LineSums of_b{doubles(at_.b_sums), doubles(at_.b_squares)}, of_a{doubles(at_.expected), doubles(at_.squares)};
    // b·x: over the columns of b, which are its lines where these lie along k.
    Weights signs{doubles(0), nullptr}, sums_of_b{of_b.sums, of_b.squares};
    b_along ? columns(b, signs, of_b) : lines(b, signs, of_b);
    a_along ? lines(a, sums_of_b, of_a) : columns(a, sums_of_b, of_a);
    auto* suspects = reinterpret_cast<SuspectRows*>(check_.scratch + at_.bytes());
    check_cuda(cudaMemsetAsync(suspects, 0, sizeof *suspects, stream_), "a check of a GEMM");
    SumRounding sums = sums_of(shape_);
    TypeRounding stored = rounding_of(shape_.out);
    bool has_bias = shape_.epilogue == GemmEpilogue::bias || shape_.epilogue == GemmEpilogue::gelu_bias;
    Judged judged{.a = a,
                  .b = b,
                  .c = result(),
                  .a_along = a_along,
                  .b_along = b_along,
                  .bias = has_bias ? operands_.bias : nullptr,
                  .bias_dtype = shape_.scales == GemmScales::none ? shape_.out : DType::bf16,
                  .adds = adds(),
                  .m = shape_.m,
                  .n = shape_.n,
                  .k = shape_.k,
                  .signs = doubles(0),
                  .b_squares = of_b.squares,
                  .expected = of_a.sums,
                  .squares = of_a.squares,
                  .before = doubles(at_.before),
                  .before_squares = doubles(at_.before_squares),
                  .roundoff = sums.roundoff,
                  .roundings = sums.roundings,
                  .narrowing = stored.roundoff,
                  .least = sums.roundings * static_cast<double>(FLT_MIN) + stored.least,
                  .largest = stored.largest,
                  .suspects = suspects,
                  .fault = check_.fault,
                  .op = check_.op};
    if (judged.bias)
      lines(lines_of(judged.bias, judged.bias_dtype, 1, shape_.n, 0), signs,
            {&suspects->bias, &suspects->bias_squares});
    for_operand_type(shape_.out, [&]<class T>() {
      for_lines_at_once<T>(judged.c, [&]<int V, int kLines>() {
        find_suspects<T, V, kLines><<<blocks_for(shape_.m, kCheckWarps * kLines), kCheckThreads, 0, stream_>>>(judged);
      });
      // Sums of many terms often look wrong: tensor cores cut terms off, which adds up. So this must be quick, too.
      dim3 grid(blocks_for(shape_.n, 32), cuda::kMostSuspects);
      judge_suspects<T><<<grid, kJudgeThreads, 0, stream_>>>(judged);
    });
  }

  void spoil() const { flip_largest<<<1, kCheckThreads, 0, stream_>>>(result()); }

 private:
  double* doubles(int64_t offset) const { return reinterpret_cast<double*>(check_.scratch + offset); }

  StoredLines first() const {
    bool as_is = shape_.a_order == MatrixOrder::as_is;
    StoredLines a =
        lines_of(operands_.a, shape_.in, as_is ? shape_.m : shape_.k, as_is ? shape_.k : shape_.m, shape_.a_stride);
    a.scales = operands_.a_scales;
    if (shape_.scales == GemmScales::tensors) a.order = ScaleOrder::tensor;
    if (shape_.scales == GemmScales::tiles || shape_.scales == GemmScales::tiles_and_blocks)
      a.order = ScaleOrder::tiles;
    return a;
  }

  StoredLines second() const {
    bool as_is = shape_.b_order == MatrixOrder::as_is;
    StoredLines b =
        lines_of(operands_.b, shape_.b_in(), as_is ? shape_.k : shape_.n, as_is ? shape_.n : shape_.k, shape_.b_stride);
    b.scales = operands_.b_scales;
    b.scale_stride = round_up(ceil_div(shape_.k, cuda::kFp8Tile), 4);
    if (shape_.scales == GemmScales::tensors) b.order = ScaleOrder::tensor;
    if (shape_.scales == GemmScales::tiles) b.order = ScaleOrder::tiles;
    if (shape_.scales == GemmScales::tiles_and_blocks) b.order = ScaleOrder::blocks;
    return b;
  }

  void lines(const StoredLines& x, const Weights& w, const LineSums& out) const {
    for_operand_type(x.dtype, [&]<class T>() {
      for_lines_at_once<T>(x, [&]<int V, int kLines>() {
        sum_lines<T, V, kLines><<<blocks_for(x.lines, kCheckWarps * kLines), kCheckThreads, 0, stream_>>>(x, w, out);
      });
    });
  }

  void columns(const StoredLines& x, const Weights& w, const LineSums& out) const {
    for (double* sums : {out.sums, out.squares})
      check_cuda(cudaMemsetAsync(sums, 0, static_cast<size_t>(x.width) * sizeof(double), stream_), "a check of a GEMM");
    for_operand_type(x.dtype, [&]<class T>() {
      const bool wide = has_neighbours<T>(x);
      auto* kernel = wide ? sum_columns_of<T, kNeighbours<T>> : sum_columns_of<T, 1>;
      dim3 grid(blocks_for(x.width, 32 * (wide ? kNeighbours<T> : 1)), blocks_for(x.lines, kLinesOfSlice));
      kernel<<<grid, kCheckThreads, 0, stream_>>>(x, w, out);
    });
  }

  const GemmShape& shape_;
  const GemmOperands& operands_;
  const DeviceGemmCheck& check_;
  GemmCheckSizes at_;
  cudaStream_t stream_;
};

}  // namespace

void begin_check(const GemmShape& shape, const GemmOperands& operands, const DeviceGemmCheck& check,
                 cudaStream_t stream) {
  if (!check.verifies) return;
  BUG_IF(shape.epilogue == GemmEpilogue::gelu_gradient, "a product that is not stored cannot be checked");
  GemmInspection(shape, operands, check, stream).begin();
}

void end_check(const GemmShape& shape, const GemmOperands& operands, DeviceGemmCheck& check, cudaStream_t stream) {
  GemmInspection inspection(shape, operands, check, stream);
  if (check.flips > 0) {
    --check.flips;
    inspection.spoil();
  }
  if (check.verifies) inspection.end();
}

}  // namespace sextant
