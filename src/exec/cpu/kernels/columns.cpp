#include <cstring>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

// Copies `columns` elements of each row of `from`, from column `from_at` on, to column `to_at` of `to`.
void copy_columns(const KernelCall& call, const Tensor& from, int64_t from_at, const Tensor& to, int64_t to_at,
                  int64_t columns) {
  int64_t size = size_of(from.dtype), from_row = from.shape.last() * size, to_row = to.shape.last() * size;
  const std::byte* source = from.as<const std::byte>() + from_at * size;
  std::byte* target = to.as<std::byte>() + to_at * size;
  for_blocks(call.team, from.shape.rows(), rows_per_task(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      std::memcpy(target + row * to_row, source + row * from_row, static_cast<size_t>(columns * size));
  });
}

void run_split_columns(const KernelCall& call) {
  int64_t first = call.out[0].shape.last();
  copy_columns(call, call.in[0], 0, call.out[0], 0, first);
  copy_columns(call, call.in[0], first, call.out[1], 0, call.out[1].shape.last());
}

void run_join_columns(const KernelCall& call) {
  int64_t first = call.in[0].shape.last(), count = call.out[0].count() * size_of(call.out[0].dtype);
  if (call.in.size() < 2) std::memset(call.out[0].data, 0, static_cast<size_t>(count));
  copy_columns(call, call.in[0], 0, call.out[0], 0, first);
  if (call.in.size() > 1) copy_columns(call, call.in[1], 0, call.out[0], first, call.in[1].shape.last());
}

}  // namespace

const CpuKernel split_columns{.run = run_split_columns};
const CpuKernel join_columns{.run = run_join_columns};

}  // namespace sextant::cpu
