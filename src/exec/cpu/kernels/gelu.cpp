#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/amax.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

// row(x, y, n) of each task's elements.
template <class Row>
void run_gelu(const KernelCall& call, const Row& row) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* x = call.in[0].as<T>();
    T* y = call.out[0].as<T>();
    for_blocks(call.team, call.in[0].count(), kElementsPerTask,
               [&](int64_t begin, int64_t end) { row(x + begin, y + begin, end - begin); });
  });
  write_amax(call, call.out[0]);
}

// row(dy, x, dx, n)
template <class Row>
void run_gelu_backward(const KernelCall& call, const Row& row) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* dy = call.in[0].as<T>();
    const T* x = call.in[1].as<T>();
    T* dx = call.out[0].as<T>();
    for_blocks(call.team, call.in[0].count(), kElementsPerTask,
               [&](int64_t begin, int64_t end) { row(dy + begin, x + begin, dx + begin, end - begin); });
  });
  write_amax(call, call.out[0]);
}

void tanh_forward(const KernelCall& call) {
  run_gelu(call, [](const auto* x, auto* y, int64_t n) { gelu_row(x, y, n); });
}
void tanh_backward(const KernelCall& call) {
  run_gelu_backward(call, [](const auto* dy, const auto* x, auto* dx, int64_t n) { gelu_backward_row(dy, x, dx, n); });
}
void erf_forward(const KernelCall& call) {
  run_gelu(call, [](const auto* x, auto* y, int64_t n) { gelu_erf_row(x, y, n); });
}
void erf_backward(const KernelCall& call) {
  run_gelu_backward(call,
                    [](const auto* dy, const auto* x, auto* dx, int64_t n) { gelu_erf_backward_row(dy, x, dx, n); });
}

}  // namespace

const CpuKernel gelu{.run = tanh_forward};
const CpuKernel gelu_backward{.run = tanh_backward};
const CpuKernel gelu_erf{.run = erf_forward};
const CpuKernel gelu_erf_backward{.run = erf_backward};

}  // namespace sextant::cpu
