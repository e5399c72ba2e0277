#include <cmath>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

template <class T>
T gate_value(T gate) {
  return 1 / (1 + std::exp(-gate));
}

void run_row_gate(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *x = call.in[0].as<T>(), *gates = call.in[1].as<T>();
    T* y = call.out[0].as<T>();
    int64_t width = call.in[0].shape.last();
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        T gate = gate_value(gates[row]);
        for (int64_t j = row * width; j < (row + 1) * width; ++j) y[j] = gate * x[j];
      }
    });
  });
}

void run_row_gate_backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *dy = call.in[0].as<T>(), *x = call.in[1].as<T>(), *gates = call.in[2].as<T>();
    T *dx = call.out[0].as<T>(), *dgates = call.out[1].as<T>();
    int64_t width = call.in[0].shape.last();
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        T gate = gate_value(gates[row]), sum = 0;
        for (int64_t j = row * width; j < (row + 1) * width; ++j) {
          sum += dy[j] * x[j];
          dx[j] = gate * dy[j];
        }
        dgates[row] = gate * (1 - gate) * sum;
      }
    });
  });
}

}  // namespace

const CpuKernel row_gate{.run = run_row_gate};
const CpuKernel row_gate_backward{.run = run_row_gate_backward};

}  // namespace sextant::cpu
