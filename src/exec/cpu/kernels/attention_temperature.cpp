#include <algorithm>
#include <cmath>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "targets/local_heads.h"

namespace sextant::cpu {

namespace {

void run_attention_temperature(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const LocalShape& shape = call.in[0].shape;
    int64_t length = shape[1], width = shape[2], queries = local_heads(call.attrs, width).q_width();
    int64_t positions = call.attrs.integer("positions"), start = call.in.size() > 1 ? *call.in[1].as<int32_t>() : 0;
    double strength = call.attrs.real("strength");
    const T* x = call.in[0].as<T>();
    T* y = call.out[0].as<T>();
    for_blocks(call.team, shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t steps = (start + call.in[0].global_index(1, row % length) + 1) / positions;
        T factor = static_cast<T>(1 + strength * std::log1p(static_cast<double>(steps)));
        const T* from = x + row * width;
        T* to = y + row * width;
        for (int64_t j = 0; j < queries; ++j) to[j] = factor * from[j];
        if (from != to) std::copy(from + queries, from + width, to + queries);
      }
    });
  });
}

}  // namespace

const CpuKernel attention_temperature{.run = run_attention_temperature};

}  // namespace sextant::cpu
