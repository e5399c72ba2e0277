#include <algorithm>
#include <cmath>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

// Rows of y [b s heads·dim] beside values of heads [b heads s].
struct HeadRows {
  HeadRows(const Tensor& y, const Tensor& lse)
      : batch(lse.shape[0]), heads(lse.shape[1]), length(lse.shape[2]), dim(heads > 0 ? y.shape[2] / heads : 0) {}
  int64_t batch, heads, length, dim;

  int64_t row_at(int64_t b, int64_t head, int64_t i) const { return ((b * length + i) * heads + head) * dim; }
  int64_t value_at(int64_t b, int64_t head, int64_t i) const { return (b * heads + head) * length + i; }
};

void run_join_sinks(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const HeadRows at(call.in[0], call.in[1]);
    const T *y = call.in[0].as<T>(), *lse = call.in[1].as<T>(), *sinks = call.in[2].as<T>();
    T *y_with = call.out[0].as<T>(), *lse_with = call.out[1].as<T>();
    for_blocks(call.team, at.batch * at.heads, rows_per_task(at.length * at.dim), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t b = row / at.heads, head = row % at.heads;
        for (int64_t i = 0; i < at.length; ++i) {
          T before = lse[at.value_at(b, head, i)], top = std::max(before, sinks[head]);
          T with = top + std::log(std::exp(before - top) + std::exp(sinks[head] - top)), kept = std::exp(before - with);
          lse_with[at.value_at(b, head, i)] = with;
          int64_t first = at.row_at(b, head, i);
          for (int64_t j = first; j < first + at.dim; ++j) y_with[j] = kept * y[j];
        }
      }
    });
  });
}

void run_sinks_gradient(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const HeadRows at(call.in[0], call.in[2]);
    const T *dy = call.in[0].as<T>(), *y = call.in[1].as<T>(), *lse = call.in[2].as<T>(), *sinks = call.in[3].as<T>();
    T* dsinks = call.out[0].as<T>();
    for_blocks(call.team, at.heads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) {
        double sum = 0;
        for (int64_t b = 0; b < at.batch; ++b)
          for (int64_t i = 0; i < at.length; ++i) {
            int64_t first = at.row_at(b, head, i);
            T dot = 0;
            for (int64_t j = first; j < first + at.dim; ++j) dot += dy[j] * y[j];
            sum -= static_cast<double>(std::exp(sinks[head] - lse[at.value_at(b, head, i)]) * dot);
          }
        dsinks[head] = static_cast<T>(sum);
      }
    });
  });
}

}  // namespace

const CpuKernel join_sinks{.run = run_join_sinks};
const CpuKernel sinks_gradient{.run = run_sinks_gradient};

}  // namespace sextant::cpu
