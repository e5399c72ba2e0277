#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

// Comparisons are such that NaN goes in and NaN comes out.
template <class Function>
void map_one(const KernelCall& call, const Function& f) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* x = call.in[0].as<T>();
    T* y = call.out[0].as<T>();
    for_blocks(call.team, call.in[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = f(x[i]);
    });
  });
}

template <class Function>
void map_two(const KernelCall& call, const Function& f) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *a = call.in[0].as<T>(), *b = call.in[1].as<T>();
    T* y = call.out[0].as<T>();
    for_blocks(call.team, call.in[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = f(a[i], b[i]);
    });
  });
}

void run_relu(const KernelCall& call) {
  map_one(call, []<class T>(T x) { return x < 0 ? T(0) : x; });
}
void run_relu_backward(const KernelCall& call) {
  map_two(call, []<class T>(T dy, T y) { return y == 0 ? T(0) : dy; });
}
void run_squared_relu(const KernelCall& call) {
  map_one(call, []<class T>(T x) { return x < 0 ? T(0) : x * x; });
}
void run_squared_relu_backward(const KernelCall& call) {
  map_two(call, []<class T>(T dy, T x) { return x < 0 ? T(0) : 2 * x * dy; });
}

}  // namespace

const CpuKernel relu{.run = run_relu};
const CpuKernel relu_backward{.run = run_relu_backward};
const CpuKernel squared_relu{.run = run_squared_relu};
const CpuKernel squared_relu_backward{.run = run_squared_relu_backward};

}  // namespace sextant::cpu
