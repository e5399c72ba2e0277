#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/amax.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

void run_swiglu(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* x = call.in[0].as<T>();
    T* y = call.out[0].as<T>();
    int64_t width = call.out[0].shape.last();
    for_blocks(call.team, call.out[0].shape.rows(), rows_per_task(2 * width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* gate = x + row * 2 * width;
        swiglu_row(gate, gate + width, y + row * width, width);
      }
    });
  });
  write_amax(call, call.out[0]);
}

void run_swiglu_backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* dy = call.in[0].as<T>();
    const T* x = call.in[1].as<T>();
    T* dx = call.out[0].as<T>();
    int64_t width = call.in[0].shape.last();
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(2 * width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* gate = x + row * 2 * width;
        T* dgate = dx + row * 2 * width;
        swiglu_backward_row(SwigluRow<T>{dy + row * width, gate, gate + width, dgate, dgate + width}, width);
      }
    });
  });
  write_amax(call, call.out[0]);
}

}  // namespace

const CpuKernel swiglu{.run = run_swiglu};
const CpuKernel swiglu_backward{.run = run_swiglu_backward};

}  // namespace sextant::cpu
