#include "exec/cpu/blocks.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/vector_math.h"

namespace sextant::cpu {

namespace {

void forward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* x = call.in[0].as<T>();
    T* y = call.out[0].as<T>();
    for_blocks(call.team, call.in[0].count(), kElementsPerTask,
               [&](int64_t begin, int64_t end) { gelu_row(x + begin, y + begin, end - begin); });
  });
}

void backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* dy = call.in[0].as<T>();
    const T* x = call.in[1].as<T>();
    T* dx = call.out[0].as<T>();
    for_blocks(call.team, call.in[0].count(), kElementsPerTask,
               [&](int64_t begin, int64_t end) { gelu_backward_row(dy + begin, x + begin, dx + begin, end - begin); });
  });
}

}  // namespace

const CpuKernel gelu{.run = forward};
const CpuKernel gelu_backward{.run = backward};

}  // namespace sextant::cpu
