#include <memory>
#include <vector>

#include "base/units.h"
#include "exec/cuda/attention/own_attention.h"
#include "exec/cuda/kernels/reduce.cuh"
#include "exec/cuda/runtime/kernel.h"
#include "exec/cuda/runtime/real_type.h"

namespace sextant::cuda {

namespace {

constexpr int kSinkThreads = 256, kSinkWarps = kSinkThreads / 32;

// Rows of y [b s heads·dim] beside values of heads [b heads s].
template <class T>
struct SinkRows {
  const T *y, *sinks;
  const float* lse;
  T* y_with;
  float* lse_with;
  int64_t rows;  // of heads: b·s·heads
  int64_t heads, length, dim;
};

// A warp for each row of a head. Results may stand where operands do: a warp writes where it alone has read.
template <class T>
__global__ void __launch_bounds__(kSinkThreads) join_rows(SinkRows<T> x) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kSinkWarps + threadIdx.x / 32;
  if (row >= x.rows) return;
  const int64_t head = row % x.heads, i = row / x.heads % x.length, b = row / x.heads / x.length;
  const int64_t at = (b * x.heads + head) * x.length + i;
  const float sink = static_cast<float>(x.sinks[head]), lse = x.lse[at], top = fmaxf(lse, sink);
  const float with = top + logf(expf(lse - top) + expf(sink - top)), kept = expf(lse - with);
  for (int64_t j = row * x.dim + threadIdx.x % 32; j < (row + 1) * x.dim; j += 32)
    x.y_with[j] = static_cast<T>(kept * static_cast<float>(x.y[j]));
  __syncwarp();  // all lanes have read lse
  if (threadIdx.x % 32 == 0) x.lse_with[at] = with;
}

void join(const Tensor& y, const Tensor& lse, const Tensor& sinks, std::span<const Tensor> out, cudaStream_t stream) {
  const int64_t heads = lse.shape[1], rows = lse.count();
  if (rows == 0) return;
  for_cuda_type(y.dtype, [&]<class T>() {
    SinkRows<T> x{.y = y.as<const T>(),
                  .sinks = sinks.as<const T>(),
                  .lse = lse.as<const float>(),
                  .y_with = out[0].as<T>(),
                  .lse_with = out[1].as<float>(),
                  .rows = rows,
                  .heads = heads,
                  .length = lse.shape[2],
                  .dim = y.shape[2] / heads};
    join_rows<T><<<static_cast<unsigned>(ceil_div(rows, kSinkWarps)), kSinkThreads, 0, stream>>>(x);
  });
}

void run_join_sinks(const CudaCall& call) {
  join(call.in[0], call.in[1], call.in[2], call.out, call.stream);
}

// A block for each head: the sum over all rows, in a fixed order.
template <class T>
__global__ void __launch_bounds__(kSinkThreads)
    sum_sinks(const float* dots, const float* lse, const T* sinks, float* dsinks, int64_t batch, int64_t length) {
  const int64_t head = blockIdx.x, heads = gridDim.x;
  const float sink = static_cast<float>(sinks[head]);
  float sum = 0;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = threadIdx.x; i < length; i += kSinkThreads) {
      int64_t at = (b * heads + head) * length + i;
      sum = fmaf(-expf(sink - lse[at]), dots[at], sum);
    }
  sum = block_sum<kSinkThreads>(sum);
  if (threadIdx.x == 0) dsinks[head] = sum;
}

void run_sinks_gradient(const CudaCall& call) {
  const Tensor &dy = call.in[0], &lse = call.in[2];
  const int64_t heads = lse.shape[1];
  if (heads == 0) return;
  auto* dots = reinterpret_cast<float*>(call.workspace);
  if (lse.count() > 0)
    output_dots({.dtype = dy.dtype,
                 .batch = dy.shape[0],
                 .length = dy.shape[1],
                 .heads = heads,
                 .dim = dy.shape[2] / heads,
                 .dy = dy.data,
                 .y = call.in[1].data,
                 .dots = dots},
                call.stream);
  for_cuda_type(dy.dtype, [&]<class T>() {
    sum_sinks<T><<<static_cast<unsigned>(heads), kSinkThreads, 0, call.stream>>>(
        dots, lse.as<const float>(), call.in[3].as<const T>(), call.out[0].as<float>(), lse.shape[0], lse.shape[2]);
  });
}

// Programs have attention and join_sinks in its place (localize); on its own it is these two.
class SinkAttention final : public PreparedCudaKernel {
 public:
  explicit SinkAttention(const CudaPreparation& p) : in_(without_sinks(p.in)) {
    attention_ = attention.prepare({p.op, p.program, p.rank, p.at, in_, p.out, p.device, p.wires});
  }

  void launch(const CudaCall& call) override {
    in_ = without_sinks(call.in);
    attention_->launch(
        {in_, call.out, call.attrs, call.workspace, call.device, call.stream, call.microbatch, call.sum});
    join(call.out[0], call.out[1], call.in[1], call.out, call.stream);
  }

 private:
  static std::vector<Tensor> without_sinks(std::span<const Tensor> in) {
    std::vector<Tensor> rest(in.begin(), in.end());
    rest.erase(rest.begin() + 1);
    return rest;
  }

  std::vector<Tensor> in_;
  std::unique_ptr<PreparedCudaKernel> attention_;
};

std::unique_ptr<PreparedCudaKernel> prepare_sink_attention(const CudaPreparation& p) {
  return std::make_unique<SinkAttention>(p);
}

}  // namespace

const CudaKernel sink_attention{.prepare = prepare_sink_attention};
const CudaKernel join_sinks{.launch = run_join_sinks};
const CudaKernel sinks_gradient{.launch = run_sinks_gradient};

}  // namespace sextant::cuda
