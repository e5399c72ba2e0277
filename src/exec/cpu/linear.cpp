#include <algorithm>

#include "exec/cpu/column_sums.h"
#include "exec/cpu/gemm.h"
#include "exec/cpu/kernel.h"

namespace sextant::cpu {

namespace {

void forward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    int64_t inner = call.in[0].shape.last(), outputs = call.out[0].shape.last();
    multiply(Product<T>{.m = call.in[0].shape.rows(),
                        .n = outputs,
                        .k = inner,
                        .a = {call.in[0].as<T>(), inner},
                        .b = Matrix<T>{call.in[1].as<T>(), inner}.transposed(),
                        .c = call.out[0].as<T>(),
                        .c_stride = outputs,
                        .bias = call.in.size() > 2 ? call.in[2].as<T>() : nullptr},
             call.team, call.workspace);
  });
}

Bytes forward_workspace(const WorkspaceQuery& query) {
  return {multiply_workspace(query.out[0].shape.last(), query.in[0].shape.last(), query.threads)};
}

void input_gradient(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    int64_t outputs = call.in[0].shape.last(), inner = call.out[0].shape.last();
    multiply(Product<T>{.m = call.in[0].shape.rows(),
                        .n = inner,
                        .k = outputs,
                        .a = {call.in[0].as<T>(), outputs},
                        .b = {call.in[1].as<T>(), inner},
                        .c = call.out[0].as<T>(),
                        .c_stride = inner},
             call.team, call.workspace);
  });
}

Bytes input_gradient_workspace(const WorkspaceQuery& query) {
  return {multiply_workspace(query.out[0].shape.last(), query.in[0].shape.last(), query.threads)};
}

void weight_gradient(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    int64_t outputs = call.in[0].shape.last(), inner = call.in[1].shape.last();
    multiply(Product<T>{.m = outputs,
                        .n = inner,
                        .k = call.in[0].shape.rows(),
                        .a = Matrix<T>{call.in[0].as<T>(), outputs}.transposed(),
                        .b = {call.in[1].as<T>(), inner},
                        .c = call.out[0].as<T>(),
                        .c_stride = inner,
                        .write = call.accumulate() ? Write::add : Write::over},
             call.team, call.workspace);
  });
}

Bytes weight_gradient_workspace(const WorkspaceQuery& query) {
  return {multiply_workspace(query.in[1].shape.last(), query.in[0].shape.rows(), query.threads)};
}

void bias_gradient(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
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
    add_partials(call.team, partials, blocks.count(), width, call.out[0].as<T>(),
                 call.accumulate() ? Write::add : Write::over);
  });
}

Bytes bias_gradient_workspace(const WorkspaceQuery& query) {
  int64_t blocks = row_blocks(query.in[0].shape.rows()).count();
  return {blocks * query.in[0].shape.last() * size_of(query.in[0].dtype)};
}

}  // namespace

const CpuKernel linear{.run = forward, .workspace = forward_workspace};
const CpuKernel linear_input_gradient{.run = input_gradient, .workspace = input_gradient_workspace};
const CpuKernel linear_weight_gradient{.run = weight_gradient, .workspace = weight_gradient_workspace};
const CpuKernel linear_bias_gradient{.run = bias_gradient, .workspace = bias_gradient_workspace};

}  // namespace sextant::cpu
