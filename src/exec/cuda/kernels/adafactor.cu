#include <algorithm>

#include "exec/cuda/kernels/parameter.cuh"
#include "exec/cuda/kernels/parameter_step.cuh"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/kernels/spans.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "targets/cuda/adafactor_sizes.h"

namespace sextant::cuda {

namespace {

constexpr int kThreads = 256;

// Which packed tensor a row of what this rank holds belongs to.
struct PackedRows {
  static constexpr int kMost = 8;
  Spans rows;
  int count;
  int64_t extents[kMost];

  PackedRows(const Attrs& attrs, const Tensor& tensor) : rows(spans_of(tensor, 0)), count(0) {
    for (int64_t extent : attrs.integers("packed")) {
      BUG_IF(count == kMost, "more than {} tensors packed in one", kMost);
      extents[count++] = extent;
    }
  }
  __device__ int of(int64_t local_row) const {  // -1 in padding
    int64_t row = rows.global_index(local_row);
    for (int i = 0; i < count && row >= 0; ++i) {
      if (row < extents[i]) return i;
      row -= extents[i];
    }
    return -1;
  }
};

// A block for each packed tensor adds up what its rows left, in order.
__global__ void __launch_bounds__(kThreads)
    add_rows(const __grid_constant__ PackedRows packed, const double* of_rows, int64_t rows, float* sums) {
  double sum = 0;
  for (int64_t row = threadIdx.x; row < rows; row += kThreads)
    if (packed.of(row) == static_cast<int>(blockIdx.x)) sum += of_rows[row];
  sum = block_sum<kThreads>(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = static_cast<float>(sum);
}

void launch_add_rows(const CudaCall& call, const PackedRows& packed, const double* of_rows, const Tensor& sums) {
  add_rows<<<static_cast<unsigned>(packed.count), kThreads, 0, call.stream>>>(packed, of_rows, call.in[1].shape[0],
                                                                              sums.as<float>());
}

template <class T>
__device__ float weight_at(const T* p, const void* low, int64_t i) {
  float x[1];
  load_parameters(p + i, beside_at<T>(low, i), x);
  return x[0];
}

template <class T>
struct SumOperands {
  const T* p;
  const void* low;
  const float *g, *scale;
  int64_t rows, width;
};

// A block for each row.
template <class T>
__global__ void __launch_bounds__(kThreads) row_squares(SumOperands<T> in, float* row_sums, double* weights) {
  int64_t row = blockIdx.x;
  float gradients = 0, squares = 0;
  for (int64_t i = threadIdx.x; i < in.width; i += kThreads) {
    float g = *in.scale * in.g[row * in.width + i], p = weight_at(in.p, in.low, row * in.width + i);
    gradients += g * g;
    squares += p * p;
  }
  double sum = block_sum<kThreads>(static_cast<double>(gradients));
  __syncthreads();
  double weight = block_sum<kThreads>(static_cast<double>(squares));
  if (threadIdx.x != 0) return;
  row_sums[row] = static_cast<float>(sum);
  weights[row] = weight;
}

// A thread for each column of a slice of rows: the rows of one packed tensor follow one another.
__global__ void __launch_bounds__(kThreads) column_squares(const float* g, const float* scale, AdafactorSums sizes,
                                                           const __grid_constant__ PackedRows packed, float* partials) {
  int64_t column = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, slice = blockIdx.y;
  if (column >= sizes.width) return;
  int64_t begin = slice * sizes.rows_of_slice, end = min(sizes.rows, begin + sizes.rows_of_slice);
  for (int of = 0; of < packed.count; ++of) {
    float sum = 0;
    for (int64_t row = begin; row < end; ++row) {
      if (packed.of(row) != of) continue;
      float x = *scale * g[row * sizes.width + column];
      sum += x * x;
    }
    partials[(slice * sizes.packed + of) * sizes.width + column] = sum;
  }
}

__global__ void __launch_bounds__(kThreads) add_slices(const float* partials, AdafactorSums sizes, float* columns) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, count = sizes.packed * sizes.width;
  if (i >= count) return;
  float sum = 0;
  for (int64_t slice = 0; slice < sizes.slices; ++slice) sum += partials[slice * count + i];
  columns[i] = sum;
}

void launch_sums(const CudaCall& call) {
  AdafactorSums sizes(call.attrs, call.in[1].shape);
  PackedRows packed(call.attrs, call.in[1]);
  auto* weights = reinterpret_cast<double*>(call.workspace);
  auto* partials = reinterpret_cast<float*>(call.workspace + row_sum_bytes(sizes.rows));
  const auto *g = call.in[1].as<float>(), *scale = call.in[2].as<float>();
  const void* low = call.in.size() > 3 ? call.in[3].data : nullptr;
  if (sizes.rows > 0)
    for_cuda_type(call.in[0].dtype, [&]<class T>() {
      row_squares<<<static_cast<unsigned>(sizes.rows), kThreads, 0, call.stream>>>(
          SumOperands<T>{call.in[0].as<T>(), low, g, scale, sizes.rows, sizes.width}, call.out[0].as<float>(), weights);
    });
  dim3 grid(static_cast<unsigned>(ceil_div(sizes.width, kThreads)), static_cast<unsigned>(sizes.slices));
  column_squares<<<grid, kThreads, 0, call.stream>>>(g, scale, sizes, packed, partials);
  add_slices<<<static_cast<unsigned>(ceil_div(sizes.packed * sizes.width, kThreads)), kThreads, 0, call.stream>>>(
      partials, sizes, call.out[1].as<float>());
  launch_add_rows(call, packed, weights, call.out[2]);
}

struct MeanOperands {
  const float *row_sums, *column_sums, *scale;
  const int32_t* step;
  float *r, *c, *means;
  int64_t width;
  double beta2_decay;
};

// A block for each packed matrix.
__global__ void __launch_bounds__(kThreads) move_means(MeanOperands in, const __grid_constant__ PackedRows packed) {
  int of = static_cast<int>(blockIdx.x);
  int64_t first = 0, rows = packed.extents[of];
  for (int i = 0; i < of; ++i) first += packed.extents[i];
  float weight = *in.scale == 0.0f ? 0.0f : static_cast<float>(pow(static_cast<double>(*in.step), in.beta2_decay));
  double sum = 0;
  for (int64_t row = first + threadIdx.x; row < first + rows; row += kThreads) {
    if (weight > 0.0f) in.r[row] += weight * (in.row_sums[row] / static_cast<float>(in.width) - in.r[row]);
    sum += in.r[row];
  }
  for (int64_t i = of * in.width + threadIdx.x; i < (of + 1) * in.width; i += kThreads)
    if (weight > 0.0f) in.c[i] += weight * (in.column_sums[i] / static_cast<float>(rows) - in.c[i]);
  sum = block_sum<kThreads>(sum);
  if (threadIdx.x == 0) in.means[of] = static_cast<float>(sum / static_cast<double>(rows));
}

void launch_means(const CudaCall& call) {
  PackedRows packed(call.attrs, call.out[0]);
  MeanOperands operands{.row_sums = call.in[0].as<float>(),
                        .column_sums = call.in[1].as<float>(),
                        .scale = call.in[5].as<float>(),
                        .step = call.in[4].as<int32_t>(),
                        .r = call.out[0].as<float>(),
                        .c = call.out[1].as<float>(),
                        .means = call.out[2].as<float>(),
                        .width = call.out[1].shape[1],
                        .beta2_decay = call.attrs.real("beta2_decay")};
  move_means<<<static_cast<unsigned>(packed.count), kThreads, 0, call.stream>>>(operands, packed);
}

struct DirectionOperands {
  const float *g, *r, *c, *means, *scale;
  float* u;
  double* squares;
  int64_t width;
  float eps;
};

// A block for each row.
__global__ void __launch_bounds__(kThreads)
    direction_kernel(DirectionOperands in, const __grid_constant__ PackedRows packed) {
  int64_t row = blockIdx.x;
  int of = max(0, packed.of(row));
  float part = in.r[row] / fmaxf(in.means[of], in.eps), sum = 0;
  for (int64_t i = threadIdx.x; i < in.width; i += kThreads) {
    float variance = fmaxf(part * in.c[of * in.width + i], in.eps * in.eps);
    float x = *in.scale * in.g[row * in.width + i] * rsqrtf(variance);
    in.u[row * in.width + i] = x;
    sum += x * x;
  }
  double total = block_sum<kThreads>(static_cast<double>(sum));
  if (threadIdx.x == 0) in.squares[row] = total;
}

void launch_direction(const CudaCall& call) {
  PackedRows packed(call.attrs, call.in[0]);
  int64_t rows = call.in[0].shape[0];
  auto* squares = reinterpret_cast<double*>(call.workspace);
  DirectionOperands operands{.g = call.in[0].as<float>(),
                             .r = call.in[1].as<float>(),
                             .c = call.in[2].as<float>(),
                             .means = call.in[3].as<float>(),
                             .scale = call.in[4].as<float>(),
                             .u = call.out[0].as<float>(),
                             .squares = squares,
                             .width = call.in[0].shape[1],
                             .eps = static_cast<float>(call.attrs.real("eps"))};
  if (rows > 0) direction_kernel<<<static_cast<unsigned>(rows), kThreads, 0, call.stream>>>(operands, packed);
  add_rows<<<static_cast<unsigned>(packed.count), kThreads, 0, call.stream>>>(packed, squares, rows,
                                                                              call.out[1].as<float>());
}

template <class T>
struct VectorOperands {
  const T* p;
  const void* low;
  const float *g, *scale;
  const int32_t* step;
  float *u, *v;
  double *updates, *weights;
  int64_t count;
  double beta2_decay;
  float eps;
};

template <class T>
__global__ void __launch_bounds__(kThreads) vector_kernel(VectorOperands<T> in) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= in.count) return;
  float weight = *in.scale == 0.0f ? 0.0f : static_cast<float>(pow(static_cast<double>(*in.step), in.beta2_decay));
  float gradient = *in.scale * in.g[i], mean = in.v[i];
  if (weight > 0.0f) mean += weight * (gradient * gradient - mean);
  in.v[i] = mean;
  float x = gradient * rsqrtf(fmaxf(mean, in.eps * in.eps)), p = weight_at(in.p, in.low, i);
  in.u[i] = x;
  in.updates[i] = static_cast<double>(x) * x;
  in.weights[i] = static_cast<double>(p) * p;
}

void launch_vector(const CudaCall& call) {
  int64_t n = call.in[1].shape[0];
  auto* updates = reinterpret_cast<double*>(call.workspace);
  auto* weights = reinterpret_cast<double*>(call.workspace + row_sum_bytes(n));
  if (n > 0)
    for_cuda_type(call.in[0].dtype, [&]<class T>() {
      vector_kernel<<<static_cast<unsigned>(ceil_div(n, kThreads)), kThreads, 0, call.stream>>>(
          VectorOperands<T>{.p = call.in[0].as<T>(),
                            .low = call.in.size() > 5 ? call.in[5].data : nullptr,
                            .g = call.in[1].as<float>(),
                            .scale = call.in[4].as<float>(),
                            .step = call.in[3].as<int32_t>(),
                            .u = call.out[0].as<float>(),
                            .v = call.out[1].as<float>(),
                            .updates = updates,
                            .weights = weights,
                            .count = n,
                            .beta2_decay = call.attrs.real("beta2_decay"),
                            .eps = static_cast<float>(call.attrs.real("eps"))});
    });
  PackedRows packed(call.attrs, call.in[1]);
  launch_add_rows(call, packed, updates, call.out[2]);
  launch_add_rows(call, packed, weights, call.out[3]);
}

struct StepOperands {
  const float *u, *update_squares, *weight_squares, *lr, *scale;
  const int32_t* step;
  int64_t width;
  float row_elements, update_clip, min_rms, decay;
};

// A block for each row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    step_rows(T* p, void* low, StepOperands in, const __grid_constant__ PackedRows packed) {
  if (*in.scale == 0.0f) return;
  int64_t row = blockIdx.x;
  int of = max(0, packed.of(row));
  float elements = static_cast<float>(packed.extents[of]) * in.row_elements;
  float size = fmaxf(in.min_rms, sqrtf(in.weight_squares[of] / elements));
  float clip = sqrtf(in.update_squares[of] / elements) / in.update_clip;
  float length = fminf(*in.lr, rsqrtf(static_cast<float>(*in.step))) * size / fmaxf(1.0f, clip);
  float keep = 1.0f - *in.lr * in.decay;
  for (int64_t i = row * in.width + threadIdx.x; i < (row + 1) * in.width; i += kThreads) {
    float x[1];
    load_parameters(p + i, beside_at<T>(low, i), x);
    x[0] = keep * x[0] - length * in.u[i];
    store_parameters(p + i, beside_at<T>(low, i), x);
  }
}

void launch_step(const CudaCall& call) {
  const Tensor& p = call.out[0];
  int64_t rows = p.shape[0];
  if (p.count() == 0) return;
  auto real = [&](const char* name) { return static_cast<float>(call.attrs.real(name)); };
  StepOperands operands{.u = call.in[1].as<float>(),
                        .update_squares = call.in[2].as<float>(),
                        .weight_squares = call.in[3].as<float>(),
                        .lr = call.in[4].as<float>(),
                        .scale = call.in[6].as<float>(),
                        .step = call.in[5].as<int32_t>(),
                        .width = p.count() / rows,
                        .row_elements = real("row_elements"),
                        .update_clip = real("update_clip"),
                        .min_rms = real("min_rms"),
                        .decay = real("weight_decay")};
  for_cuda_type(p.dtype, [&]<class T>() {
    step_rows<<<static_cast<unsigned>(rows), kThreads, 0, call.stream>>>(p.as<T>(), low_of(call, 1), operands,
                                                                         PackedRows(call.attrs, p));
  });
}

}  // namespace

const CudaKernel adafactor_sums{.launch = launch_sums};
const CudaKernel adafactor_means{.launch = launch_means};
const CudaKernel adafactor_direction{.launch = launch_direction};
const CudaKernel adafactor_vector{.launch = launch_vector};
const CudaKernel adafactor_step{.launch = launch_step};

}  // namespace sextant::cuda
