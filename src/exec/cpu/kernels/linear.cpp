#include <algorithm>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/column_sums.h"
#include "exec/cpu/kernels/gemm.h"
#include "exec/cpu/kernels/gemm_check.h"
#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

template <class T>
void multiply_weights(const KernelCall& call, const Tensor& y) {
  int64_t inner = call.in[0].shape.last(), outputs = y.shape.last();
  multiply_checked(Gemm<T>{.m = call.in[0].shape.rows(),
                           .n = outputs,
                           .k = inner,
                           .a = {call.in[0].as<T>(), inner},
                           .b = Matrix<T>{call.in[1].as<T>(), inner}.transposed(),
                           .c = y.as<T>(),
                           .c_stride = outputs,
                           .bias = call.in.size() > 2 ? call.in[2].as<T>() : nullptr},
                   call, call.workspace);
}

void run_linear(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() { multiply_weights<T>(call, call.out[0]); });
}

void forward_gelu(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    multiply_weights<T>(call, call.out[1]);
    const T* pre = call.out[1].as<T>();
    T* y = call.out[0].as<T>();
    for_blocks(call.team, call.out[0].count(), kElementsPerTask,
               [&](int64_t begin, int64_t end) { gelu_row(pre + begin, y + begin, end - begin); });
  });
}

void input_gradient(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    int64_t outputs = call.in[0].shape.last(), inner = call.out[0].shape.last();
    multiply_checked(Gemm<T>{.m = call.in[0].shape.rows(),
                             .n = inner,
                             .k = outputs,
                             .a = {call.in[0].as<T>(), outputs},
                             .b = {call.in[1].as<T>(), inner},
                             .c = call.out[0].as<T>(),
                             .c_stride = inner},
                     call, call.workspace);
  });
}

void gelu_gradient(const KernelCall& call) {
  input_gradient(call);
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* pre = call.in[2].as<T>();
    T* dx = call.out[0].as<T>();
    for_blocks(call.team, call.out[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      gelu_backward_row(dx + begin, pre + begin, dx + begin, end - begin);
    });
  });
}

template <class T>
void multiply_for_weights(const KernelCall& call, Write write) {
  int64_t outputs = call.in[0].shape.last(), inner = call.in[1].shape.last();
  multiply_checked(Gemm<T>{.m = outputs,
                           .n = inner,
                           .k = call.in[0].shape.rows(),
                           .a = Matrix<T>{call.in[0].as<T>(), outputs}.transposed(),
                           .b = {call.in[1].as<T>(), inner},
                           .c = call.out[0].as<T>(),
                           .c_stride = inner,
                           .write = write},
                   call, call.workspace);
}

void weight_gradient(const KernelCall& call) {
  for_real_type(call.in[0].dtype,
                [&]<class T>() { multiply_for_weights<T>(call, call.accumulate() ? Write::add : Write::over); });
}

template <class T>
void sum_rows(const KernelCall& call, T* dbias, Write write) {
  int64_t width = call.in[0].shape.last();
  RowBlocks blocks = row_blocks(call.in[0].shape.rows());
  const T* dy = call.in[0].as<T>();
  T* partials = reinterpret_cast<T*>(call.workspace);
  for_blocks(call.team, blocks.rows, blocks.block, [&](int64_t begin, int64_t end) {
    T* partial = partials + begin / blocks.block * width;
    std::copy_n(dy + begin * width, width, partial);
    for (int64_t row = begin + 1; row < end; ++row)
      for (int64_t j = 0; j < width; ++j) partial[j] += dy[row * width + j];
  });
  add_partials(call.team, partials, blocks.count(), width, dbias, write);
}

void bias_gradient(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    sum_rows<T>(call, call.out[0].as<T>(), call.accumulate() ? Write::add : Write::over);
  });
}

void both_gradients(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    Write write = call.sum == SumState::fresh ? Write::over : Write::add;
    multiply_for_weights<T>(call, write);
    sum_rows<T>(call, call.out[1].as<T>(), write);
  });
}

}  // namespace

const CpuKernel linear{.run = run_linear};
const CpuKernel linear_gelu{.run = forward_gelu};
const CpuKernel linear_gelu_gradient{.run = gelu_gradient};
const CpuKernel linear_input_gradient{.run = input_gradient};
const CpuKernel linear_weight_gradient{.run = weight_gradient};
const CpuKernel linear_gradients{.run = both_gradients};
const CpuKernel linear_bias_gradient{.run = bias_gradient};
// In f32 and f64 nothing is narrower than its sums.
const CpuKernel linear_wide{.run = run_linear};
const CpuKernel linear_wide_input_gradient{.run = input_gradient};
const CpuKernel linear_wide_weight_gradient{.run = weight_gradient};

}  // namespace sextant::cpu
