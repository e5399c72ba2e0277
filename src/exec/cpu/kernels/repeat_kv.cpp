#include <algorithm>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

// Where row `global` of the packed matrix comes from: a query row, or a row of kv.
struct Source {
  bool query;
  int64_t row;  // global row of q, or row of kv
};

Source source_of(const Attrs& attrs, int64_t global) {
  int64_t dim = attrs.integer("head_dim"), queries = attrs.integer("heads") * dim;
  if (global < queries) return {true, global};
  int64_t copies = attrs.integer("copies"), kv_heads = attrs.integer("kv_heads");
  int64_t head = (global - queries) / dim, within = (global - queries) % dim;
  int64_t value = head >= copies ? 1 : 0;
  int64_t original = (head - value * copies) * kv_heads / copies;
  return {false, (value * kv_heads + original) * dim + within};
}

// Of a row: a bias has single numbers.
int64_t width_of(const Tensor& rows) {
  return rows.shape.rank() == 2 ? rows.shape[1] : 1;
}

void run_repeat_kv(const KernelCall& call) {
  for_real_type(call.out[0].dtype, [&]<class T>() {
    int64_t width = width_of(call.out[0]);
    for_blocks(call.team, call.out[0].shape[0], rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        Source source = source_of(call.attrs, call.out[0].global_index(0, row));
        const T* from = source.query ? call.in[0].as<T>() + call.in[0].local_index(0, source.row) * width
                                     : call.in[1].as<T>() + source.row * width;
        std::copy_n(from, width, call.out[0].as<T>() + row * width);
      }
    });
  });
}

// Copies of one head lie in different rows, so a task owns columns: no two tasks write one element.
void run_repeat_kv_backward(const KernelCall& call) {
  constexpr int64_t kColumns = 64;
  for_real_type(call.in[0].dtype, [&]<class T>() {
    int64_t width = width_of(call.in[0]);
    for_blocks(call.team, width, kColumns, [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < call.out[1].shape[0]; ++row)
        std::fill(call.out[1].as<T>() + row * width + begin, call.out[1].as<T>() + row * width + end, T(0));
      for (int64_t row = 0; row < call.in[0].shape[0]; ++row) {
        Source source = source_of(call.attrs, call.in[0].global_index(0, row));
        const T* from = call.in[0].as<T>() + row * width;
        T* to = source.query ? call.out[0].as<T>() + call.out[0].local_index(0, source.row) * width
                             : call.out[1].as<T>() + source.row * width;
        for (int64_t j = begin; j < end; ++j) to[j] = source.query ? from[j] : to[j] + from[j];
      }
    });
  });
}

}  // namespace

const CpuKernel repeat_kv{.run = run_repeat_kv};
const CpuKernel repeat_kv_backward{.run = run_repeat_kv_backward};
const CpuKernel repeat_kv_bias{.run = run_repeat_kv};
const CpuKernel repeat_kv_bias_backward{.run = run_repeat_kv_backward};

}  // namespace sextant::cpu
