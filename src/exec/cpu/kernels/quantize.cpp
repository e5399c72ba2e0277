// In f64 too everything goes through f32, so that both precisions write the same bytes.
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/fp8_numbers.h"

namespace sextant::cpu {

namespace {

void run_absmax(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* x = call.in[0].as<T>();
    int64_t n = call.in[0].count();
    double* partials = reinterpret_cast<double*>(call.workspace);
    for_blocks(call.team, n, kElementsPerTask, [&](int64_t begin, int64_t end) {
      // As bits magnitudes are ordered as numbers are, with NaN above all: a loop of vectors.
      using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
      Bits largest = 0;
      for (int64_t i = begin; i < end; ++i)
        largest = std::max(largest, std::bit_cast<Bits>(x[i]) & std::numeric_limits<Bits>::max());
      partials[begin / kElementsPerTask] = static_cast<double>(std::bit_cast<T>(largest));
    });
    double largest = 0;
    for (int64_t task = 0; task < ceil_div(n, kElementsPerTask); ++task)
      largest = larger_magnitude(largest, partials[task]);
    *call.out[0].as<T>() = static_cast<T>(largest);
  });
}

// A matrix that is read along its rows, or along its columns: element (i, j) stands at data[i·row + j·column].
template <class T>
struct Strided {
  T* data;
  int64_t rows, columns;
  int64_t row, column;
  T& at(int64_t i, int64_t j) const { return data[i * row + j * column]; }
};

// One scale for all, or for each block of so many rows and columns.
struct BlockShape {
  int64_t rows, columns;
};

// q[i j] = fp8(scale·x[i j]) of the matrix x, block by block. `inverses`: 1/scale of each block.
template <class T>
void quantize_matrix(const KernelCall& call, const Strided<const T>& x, const BlockShape& block, const Tensor& q,
                     const Tensor& inverses) {
  const Fp8Format& format = fp8_format(q.dtype);
  uint8_t* codes = q.as<uint8_t>();
  const int64_t columns = x.columns, across = ceil_div(columns, block.columns);
  int64_t rows_of_task = std::max<int64_t>(1, rows_per_task(columns) / block.rows) * block.rows;
  for_blocks(call.team, x.rows, rows_of_task, [&](int64_t begin, int64_t end) {
    for (int64_t top = begin; top < end; top += block.rows) {
      int64_t bottom = std::min(end, top + block.rows);
      for (int64_t left = 0; left < columns; left += block.columns) {
        int64_t right = std::min(columns, left + block.columns);
        float amax = 0;
        for (int64_t i = top; i < bottom; ++i)
          for (int64_t j = left; j < right; ++j) amax = larger_magnitude(amax, static_cast<float>(x.at(i, j)));
        float scale = fp8_scale(format, amax);
        inverses.as<T>()[top / block.rows * across + left / block.columns] = static_cast<T>(1 / scale);
        for (int64_t i = top; i < bottom; ++i)
          for (int64_t j = left; j < right; ++j)
            codes[i * columns + j] = fp8_bits(format, scale * static_cast<float>(x.at(i, j)));
      }
    }
  });
}

// The transpose of x as its tokens (or rows) × its last dim.
void transpose_codes(const KernelCall& call, const Tensor& q, const Tensor& turned) {
  const uint8_t* from = q.as<uint8_t>();
  uint8_t* to = turned.as<uint8_t>();
  int64_t columns = q.shape.last(), rows = q.count() / std::max<int64_t>(1, columns);
  for_blocks(call.team, columns, rows_per_task(rows), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j)
      for (int64_t i = 0; i < rows; ++i) to[j * rows + i] = from[i * columns + j];
  });
}

void run_with_amax(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* x = call.in[0].as<T>();
    const Fp8Format& format = fp8_format(call.out[0].dtype);
    float scale = fp8_scale(format, static_cast<float>(*call.in[1].as<T>()));
    uint8_t* codes = call.out[0].as<uint8_t>();
    for_blocks(call.team, call.in[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) codes[i] = fp8_bits(format, scale * static_cast<float>(x[i]));
    });
    *call.out[1].as<T>() = static_cast<T>(1 / scale);
    if (call.out.size() > 2) transpose_codes(call, call.out[0], call.out[2]);
  });
}

void run_tiles(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* x = call.in[0].as<T>();
    const LocalShape& shape = call.in[0].shape;
    int64_t tile = call.attrs.integer("tile"), width = shape.last(), positions = shape[1];
    quantize_matrix<T>(call, {x, shape.rows(), width, width, 1}, {1, tile}, call.out[0], call.out[1]);
    if (call.out.size() == 2) return;
    // Row (i, b) of the transpose holds the positions of sequence b: all sequences, one place of the width after the
    // other.
    for (int64_t i = 0; i < width; ++i) {
      Tensor row = call.out[2], scales = call.out[3];
      row.data = call.out[2].as<uint8_t>() + i * shape.rows();
      scales.data = call.out[3].as<T>() + i * shape[0] * ceil_div(positions, tile);
      quantize_matrix<T>(call, {x + i, shape[0], positions, positions * width, width}, {1, tile}, row, scales);
    }
  });
}

void run_blocks(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const LocalShape& shape = call.in[0].shape;
    int64_t tile = call.attrs.integer("tile");
    quantize_matrix<T>(call, {call.in[0].as<T>(), shape[0], shape[1], shape[1], 1}, {tile, tile}, call.out[0],
                       call.out[1]);
    if (call.out.size() == 2) return;
    transpose_codes(call, call.out[0], call.out[2]);
    int64_t down = ceil_div(shape[0], tile), across = ceil_div(shape[1], tile);
    for (int64_t i = 0; i < down; ++i)
      for (int64_t j = 0; j < across; ++j) call.out[3].as<T>()[j * down + i] = call.out[1].as<T>()[i * across + j];
  });
}

}  // namespace

const CpuKernel absmax{.run = run_absmax};
const CpuKernel quantize_activation{.run = run_with_amax};
const CpuKernel quantize_weight{.run = run_with_amax};
const CpuKernel quantize_tiles{.run = run_tiles};
const CpuKernel quantize_blocks{.run = run_blocks};

}  // namespace sextant::cpu
