#include <algorithm>
#include <cstdint>
#include <span>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/dropout_mask.h"

namespace sextant::cpu {

namespace {

// The columns of one row, which a rank may hold in several pieces. What is padding stays as it is.
template <class T>
void drop_row(const DropoutMask& mask, uint64_t key, int64_t position, const Tensor& x, const T* from, T* to) {
  constexpr int64_t kColumns = 64;
  T factors[kColumns];
  int64_t width = x.shape[2];
  for (int64_t first = 0; first < width;) {
    int64_t global = x.global_index(2, first), end = std::min(width, first + kColumns);
    // A piece ends where the next column is not the next of the whole tensor.
    while (global >= 0 && end - 1 > first && x.global_index(2, end - 1) != global + (end - 1 - first)) --end;
    if (global < 0) end = first + 1;
    std::fill_n(factors, end - first, T(1));
    if (global >= 0 && position >= 0)
      mask.fill(key, 0, position, global, std::span<T>(factors, static_cast<size_t>(end - first)));
    for (int64_t i = first; i < end; ++i) to[i] = from[i] * factors[i - first];
    first = end;
  }
}

void run_dropout(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const Tensor& x = call.in[0];
    const DropoutMask mask(call.attrs);
    const auto* keys = call.in[1].as<const uint64_t>();
    int64_t length = x.shape[1], width = x.shape[2];
    for_blocks(call.team, x.shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        drop_row(mask, keys[row / length], x.global_index(1, row % length), x, x.as<T>() + row * width,
                 call.out[0].as<T>() + row * width);
    });
  });
}

}  // namespace

const CpuKernel dropout{.run = run_dropout};

}  // namespace sextant::cpu
