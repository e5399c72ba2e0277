// fp8 emulated: the bytes become numbers, times their scales, and go through the wide GEMM, which sums in f32.
#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/fp8_numbers.h"
#include "exec/cpu/kernels/gemm.h"
#include "exec/cpu/kernels/gemm_check.h"
#include "targets/cpu/fp8_sizes.h"

namespace sextant::cpu {

namespace {

// How a scale is found for an element of a matrix.
struct ScalePlace {
  int64_t rows_of_block = 0, tile = 0;  // 0: one scale for the whole

  int64_t at(int64_t row, int64_t column, int64_t columns) const {
    return tile == 0 ? 0 : row / rows_of_block * ceil_div(columns, tile) + column / tile;
  }
};

template <class T>
void numbers_of(const Tensor& codes, const Tensor& scales, const ScalePlace& place, ThreadTeam& team, T* to) {
  const Fp8Numbers& numbers = fp8_numbers(codes.dtype);
  const uint8_t* from = codes.as<uint8_t>();
  const T* factors = scales.as<T>();
  int64_t columns = codes.shape.last();
  for_blocks(team, codes.shape.rows(), rows_per_task(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t column = 0; column < columns; ++column)
        to[row * columns + column] =
            static_cast<T>(numbers[from[row * columns + column]]) * factors[place.at(row, column, columns)];
  });
}

void run_product(const KernelCall& call, const ScalePlace& of_a, const ScalePlace& of_b) {
  for_real_type(call.out[0].dtype, [&]<class T>() {
    Fp8ProductSizes sizes =
        fp8_product_sizes(call.in[0].count(), call.in[2].count(), call.out[0].shape.last(), call.out[0].dtype);
    T *a = reinterpret_cast<T*>(call.workspace), *b = reinterpret_cast<T*>(call.workspace + sizes.a_bytes());
    numbers_of(call.in[0], call.in[1], of_a, call.team, a);
    numbers_of(call.in[2], call.in[3], of_b, call.team, b);
    bool has_bias = call.in.size() > 4 && call.attrs.integer_or("accumulate", 0) == 0;
    multiply_checked(Gemm<T>{.m = sizes.m,
                             .n = sizes.n,
                             .k = sizes.k,
                             .a = {a, sizes.k},
                             .b = Matrix<T>{b, sizes.k}.transposed(),
                             .c = call.out[0].as<T>(),
                             .c_stride = sizes.n,
                             .write = call.accumulate() ? Write::add : Write::over,
                             .bias = has_bias ? call.in[4].as<T>() : nullptr},
                     call, call.workspace + sizes.a_bytes() + sizes.b_bytes());
  });
}

void run_whole(const KernelCall& call) {
  run_product(call, {}, {});
}

void run_with_blocks(const KernelCall& call) {
  int64_t tile = call.attrs.integer("tile");
  run_product(call, {1, tile}, {tile, tile});
}

void run_with_tiles(const KernelCall& call) {
  int64_t tile = call.attrs.integer("tile");
  run_product(call, {1, tile}, {1, tile});
}

}  // namespace

const CpuKernel fp8_linear{.run = run_whole};
const CpuKernel fp8_linear_input_gradient{.run = run_whole};
const CpuKernel fp8_linear_weight_gradient{.run = run_whole};
const CpuKernel fp8_block_linear{.run = run_with_blocks};
const CpuKernel fp8_block_linear_input_gradient{.run = run_with_blocks};
const CpuKernel fp8_block_linear_weight_gradient{.run = run_with_tiles};

}  // namespace sextant::cpu
