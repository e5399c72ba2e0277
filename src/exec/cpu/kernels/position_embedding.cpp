#include <algorithm>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

void run_position_embedding(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const LocalShape& shape = call.in[0].shape;
    int64_t length = shape[1], width = shape[2];
    int64_t start = call.attrs.integer_or("offset", 0) + (call.in.size() > 2 ? *call.in[2].as<int32_t>() : 0);
    const T* x = call.in[0].as<T>();
    const T* w = call.in[1].as<T>() + start * width;
    T* y = call.out[0].as<T>();
    for_blocks(call.team, shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* position = w + call.in[0].global_index(1, row % length) * width;
        for (int64_t j = 0; j < width; ++j) y[row * width + j] = x[row * width + j] + position[j];
      }
    });
  });
}

void run_position_embedding_backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const LocalShape& shape = call.in[0].shape;
    int64_t batch = shape[0], length = shape[1], width = shape[2];
    int64_t offset = call.attrs.integer_or("offset", 0);
    const T* dy = call.in[0].as<T>();
    T* dw = call.out[0].as<T>();
    for_blocks(call.team, call.out[0].shape[0], rows_per_task(width), [&](int64_t begin, int64_t end) {
      if (!call.accumulate()) std::fill(dw + begin * width, dw + end * width, T(0));
      for (int64_t row = begin; row < end; ++row) {
        int64_t s = row < offset ? -1 : call.in[0].local_index(1, row - offset);
        if (s < 0 || s >= length) continue;
        for (int64_t b = 0; b < batch; ++b)
          for (int64_t j = 0; j < width; ++j) dw[row * width + j] += dy[(b * length + s) * width + j];
      }
    });
  });
}

}  // namespace

const CpuKernel position_embedding{.run = run_position_embedding};
const CpuKernel position_embedding_backward{.run = run_position_embedding_backward};

}  // namespace sextant::cpu
