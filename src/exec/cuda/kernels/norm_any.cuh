// Norms of rows of any width and alignment, which are read as often as they are needed; and the choice between these
// kernels and those of norm.cuh.
#pragma once

#include "exec/cuda/kernels/norm.cuh"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

constexpr int kAnyThreads = 256;

template <Norm kNorm, class T>
__global__ void __launch_bounds__(kAnyThreads) norm_any_kernel(const __grid_constant__ NormRows<T> n) {
  __shared__ typename RowSums<kAnyThreads, 1>::Scratch scratch;
  RowSums<kAnyThreads, 1> row_sum(scratch);
  int64_t row = blockIdx.x, at = row * n.width;
  const T* x = n.plus ? n.sum : n.x;
  if (n.plus)  // a thread reads only what it wrote itself
    for (int64_t j = threadIdx.x; j < n.width; j += kAnyThreads)
      n.sum[at + j] = static_cast<T>(static_cast<float>(n.x[at + j]) + static_cast<float>(n.plus[at + j]));
  float total[1] = {0}, mean = 0;
  if constexpr (kNorm == Norm::layer) {
    for (int64_t j = threadIdx.x; j < n.width; j += kAnyThreads) total[0] += static_cast<float>(x[at + j]);
    row_sum(total);
    mean = total[0] / static_cast<float>(n.width);
    total[0] = 0;
  }
  for (int64_t j = threadIdx.x; j < n.width; j += kAnyThreads) {
    float centred = static_cast<float>(x[at + j]) - mean;
    total[0] += centred * centred;
  }
  row_sum(total);
  float r = 1.0f / sqrtf(total[0] / static_cast<float>(n.width) + n.eps);
  uint32_t most = 0;
  for (int64_t j = threadIdx.x; j < n.width; j += kAnyThreads) {
    float bias = kNorm == Norm::layer && n.bias ? static_cast<float>(n.bias[j]) : 0.0f;
    float y = (static_cast<float>(x[at + j]) - mean) * r * static_cast<float>(n.w[j]) + bias;
    n.y[at + j] = static_cast<T>(y);
    most = max(most, magnitude_bits(y));
  }
  if (n.amax) join_amax<T>(n.amax, most);
  if (threadIdx.x != 0) return;
  n.r[row] = r;
  if constexpr (kNorm == Norm::layer) n.m[row] = mean;
}

// dw and dbias of 256 columns over the rows of one block. Runs before dx is written, which may lie over dy.
template <Norm kNorm, class T>
__global__ void __launch_bounds__(kAnyThreads)
    weight_gradient_any_kernel(const __grid_constant__ NormGradient<T> n, int64_t blocks) {
  int64_t column = static_cast<int64_t>(blockIdx.x) * kAnyThreads + threadIdx.x;
  if (column >= n.width) return;
  float dw = 0, dbias = 0;
#pragma unroll 4
  for (int64_t row = blockIdx.y; row < n.rows; row += blocks) {
    float dy = static_cast<float>(n.dy[row * n.width + column]), x = static_cast<float>(n.x[row * n.width + column]);
    dw += dy * (x - (kNorm == Norm::layer ? n.m[row] : 0.0f)) * n.r[row];
    dbias += dy;
  }
  n.dw[blockIdx.y * n.width + column] = dw;
  if constexpr (kNorm == Norm::layer) n.dbias[blockIdx.y * n.width + column] = dbias;
}

template <Norm kNorm, class T>
__global__ void __launch_bounds__(kAnyThreads) input_gradient_any_kernel(const __grid_constant__ NormGradient<T> n) {
  __shared__ typename RowSums<kAnyThreads, 2>::Scratch scratch;
  RowSums<kAnyThreads, 2> row_sums(scratch);
  int64_t row = blockIdx.x, at = row * n.width;
  float m = kNorm == Norm::layer ? n.m[row] : 0.0f, r = n.r[row];
  float means[2] = {0, 0};
  for (int64_t j = threadIdx.x; j < n.width; j += kAnyThreads) {
    float g = static_cast<float>(n.dy[at + j]) * static_cast<float>(n.w[j]);
    if constexpr (kNorm == Norm::layer) means[0] += g;
    means[1] += g * (static_cast<float>(n.x[at + j]) - m) * r;
  }
  row_sums(means);
  means[0] /= static_cast<float>(n.width);
  means[1] /= static_cast<float>(n.width);
  uint32_t most = 0;
  for (int64_t j = threadIdx.x; j < n.width; j += kAnyThreads) {
    float g = static_cast<float>(n.dy[at + j]) * static_cast<float>(n.w[j]);
    float plus = n.plus ? static_cast<float>(n.plus[at + j]) : 0.0f;
    float dx = plus + r * (g - means[0] - (static_cast<float>(n.x[at + j]) - m) * r * means[1]);
    n.dx[at + j] = static_cast<T>(dx);
    most = max(most, magnitude_bits(dx));
  }
  if (n.amax) join_amax<T>(n.amax, most);
}

// Whether rows of this width may be read in 16-byte vectors.
template <class T>
bool in_vectors(int64_t width) {
  return width % kFullVector<T> == 0;
}

// Blocks with more than 48 KiB of shared memory must be allowed to have it.
template <class Queue, class Kernel>
void allow_queue(Kernel* kernel) {
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Queue::kBytes),
             "shared memory of a norm");
}

template <Norm kNorm, class T>
void launch_norm(const NormRows<T>& rows, cudaStream_t stream) {
  if (rows.rows == 0) return;
  auto in_registers = [&]<int kThreads, int kVectors>() {
    int64_t blocks = ceil_div(rows.rows, norm_block(kThreads) / kThreads);
    norm_rows_kernel<kNorm, T, kThreads, kVectors>
        <<<static_cast<unsigned>(blocks), norm_block(kThreads), 0, stream>>>(rows);
  };
  if (in_vectors<T>(rows.width) && for_row_layout(rows.width / kFullVector<T>, in_registers)) return;
  norm_any_kernel<kNorm><<<static_cast<unsigned>(rows.rows), kAnyThreads, 0, stream>>>(rows);
}

// `n` without the partial sums, which lie in the call's workspace: those of dw, then (layer norm) of dbias; outputs 1
// and 2 are dw and dbias, if it is there.
template <Norm kNorm, class T>
void launch_norm_gradient(NormGradient<T> n, const CudaCall& call) {
  int64_t blocks = norm_backward_blocks(n.rows);
  bool has_bias = kNorm == Norm::layer && call.out.size() > 2;
  n.dw = reinterpret_cast<float*>(call.workspace);
  n.dbias = n.dw + blocks * n.width;
  auto in_vectors_of_row = [&]<int kThreads, int kVectors>() {
    using Queue = BackwardQueue<T, kThreads, kVectors>;
    allow_queue<Queue>(norm_gradient_kernel<kNorm, T, kThreads, kVectors>);
    norm_gradient_kernel<kNorm, T, kThreads, kVectors>
        <<<static_cast<unsigned>(blocks), Queue::kBlock, Queue::kBytes, call.stream>>>(n);
  };
  if (!in_vectors<T>(n.width) || !for_row_layout(n.width / kFullVector<T>, in_vectors_of_row)) {
    dim3 grid(static_cast<unsigned>(ceil_div(n.width, kAnyThreads)), static_cast<unsigned>(blocks));
    weight_gradient_any_kernel<kNorm><<<grid, kAnyThreads, 0, call.stream>>>(n, blocks);
    if (n.rows > 0) input_gradient_any_kernel<kNorm><<<static_cast<unsigned>(n.rows), kAnyThreads, 0, call.stream>>>(n);
  }
  add_partials({.partials = n.dw,
                .slices = blocks,
                .width = n.width,
                .out = {call.out[1].as<float>(), has_bias ? call.out[2].as<float>() : nullptr},
                .write = ColumnSums::Write::over,
                .stream = call.stream});
}

}  // namespace sextant::cuda
