#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

void run_swish(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* x = call.in[0].as<T>();
    T *y = call.out[0].as<T>(), beta = static_cast<T>(call.attrs.real("beta"));
    for_blocks(call.team, call.in[0].count(), kElementsPerTask,
               [&](int64_t begin, int64_t end) { swish_row(x + begin, y + begin, beta, end - begin); });
  });
}

void run_swish_backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *dy = call.in[0].as<T>(), *x = call.in[1].as<T>();
    T *dx = call.out[0].as<T>(), beta = static_cast<T>(call.attrs.real("beta"));
    for_blocks(call.team, call.in[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      swish_backward_row(dy + begin, x + begin, dx + begin, beta, end - begin);
    });
  });
}

}  // namespace

const CpuKernel swish{.run = run_swish};
const CpuKernel swish_backward{.run = run_swish_backward};

}  // namespace sextant::cpu
