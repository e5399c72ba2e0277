#include <algorithm>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

void run_embedding(const KernelCall& call) {
  for_real_type(call.out[0].dtype, [&]<class T>() {
    const int32_t* tokens = call.in[0].as<int32_t>();
    const T* w = call.in[1].as<T>();
    T* y = call.out[0].as<T>();
    int64_t width = call.in[1].shape.last();
    for_blocks(call.team, call.in[0].count(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t at = call.in[1].local_index(0, tokens[row]);
        at < 0 ? void(std::fill_n(y + row * width, width, T(0)))
               : void(std::copy_n(w + at * width, width, y + row * width));
      }
    });
  });
}

// A token may stand in many rows, so a task owns a slice of columns rather than rows: no two tasks write one element.
void run_embedding_backward(const KernelCall& call) {
  constexpr int64_t kColumns = 64;
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* dy = call.in[0].as<T>();
    const int32_t* tokens = call.in[1].as<int32_t>();
    T* dw = call.out[0].as<T>();
    int64_t width = call.out[0].shape.last(), padding = call.attrs.integer_or("padding", -1);
    if (!call.accumulate())
      for_blocks(call.team, call.out[0].count(), kElementsPerTask,
                 [&](int64_t begin, int64_t end) { std::fill(dw + begin, dw + end, T(0)); });
    for_blocks(call.team, width, kColumns, [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < call.in[1].count(); ++row) {
        int64_t at = call.out[0].local_index(0, tokens[row]);
        if (at < 0 || tokens[row] == padding) continue;
        const T* from = dy + row * width;
        T* to = dw + at * width;
        for (int64_t j = begin; j < end; ++j) to[j] += from[j];
      }
    });
  });
}

}  // namespace

const CpuKernel embedding{.run = run_embedding};
const CpuKernel embedding_backward{.run = run_embedding_backward};

}  // namespace sextant::cpu
