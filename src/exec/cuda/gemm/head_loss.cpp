#include <algorithm>

#include "exec/cuda/gemm/gemm.h"
#include "exec/cuda/kernels/cross_entropy.h"
#include "exec/cuda/runtime/kernel.h"
#include "targets/cuda/head_loss_sizes.h"

namespace sextant::cuda {

namespace {

enum class Want { loss, gradient, lse };

class HeadLoss final : public PreparedCudaKernel {
 public:
  HeadLoss(const CudaPreparation& p, Want want)
      : sizes_(p.in[0].dtype, p.in[0].shape, p.in[1].shape), library_(p.device.gemm()), want_(want) {
    for (int64_t begin = 0; begin < sizes_.rows; begin += sizes_.chunk) {
      int64_t rows = std::min(sizes_.chunk, sizes_.rows - begin);
      if (!chunks_.empty() && chunks_.back().rows == rows) {
        chunks_.push_back(chunks_.back());
        chunks_.back().begin = begin;
        continue;
      }
      chunks_.push_back(plan_chunk(begin, rows));
    }
  }

  void launch(const CudaCall& call) override {
    auto* losses = reinterpret_cast<float*>(call.workspace);
    std::byte* logits = call.workspace + sizes_.loss_bytes();
    std::byte* scratch = logits + sizes_.logit_bytes();
    for (const Chunk& chunk : chunks_) {
      const std::byte* x = call.in[0].as<std::byte>() + chunk.begin * sizes_.hidden * size_of(sizes_.dtype);
      library_.run(*chunk.logits, {x, call.in[1].data, logits}, scratch, call.stream, call.check);
      if (want_ == Want::lse) {
        log_sum_exp_rows(rows_of(call, chunk, logits, call.out[0].as<float>() + chunk.begin));
        continue;
      }
      cross_entropy_rows(rows_of(call, chunk, logits, losses + chunk.begin));
      if (want_ == Want::gradient) multiply_gradients(call, chunk, x, logits, scratch);
    }
    if (want_ != Want::lse)
      sum_numbers(losses, sizes_.rows, call.out[want_ == Want::loss ? 0 : 2].as<float>(), call.stream);
  }

 private:
  struct Chunk {
    int64_t begin, rows;
    const GemmPlan *logits, *dx, *dw;
  };

  Chunk plan_chunk(int64_t begin, int64_t rows) {
    int64_t v = sizes_.vocabulary, h = sizes_.hidden, stride = sizes_.stride;
    DType t = sizes_.dtype;
    Chunk chunk{begin, rows, nullptr, nullptr, nullptr};
    chunk.logits = &library_.plan(
        {.m = rows, .n = v, .k = h, .b_order = MatrixOrder::transposed, .in = t, .out = t, .c_stride = stride});
    if (want_ != Want::gradient) return chunk;
    chunk.dx = &library_.plan({.m = rows, .n = h, .k = v, .in = t, .out = t, .a_stride = stride});
    chunk.dw = &library_.plan({.m = v,
                               .n = h,
                               .k = rows,
                               .a_order = MatrixOrder::transposed,
                               .in = t,
                               .out = wide_of(t),
                               .a_stride = stride});
    return chunk;
  }

  LogitRows rows_of(const CudaCall& call, const Chunk& chunk, std::byte* logits, float* numbers) const {
    LogitRows rows{.logits = logits,
                   .dtype = sizes_.dtype,
                   .rows = chunk.rows,
                   .vocabulary = call.in[1].real_extent(0),
                   .stride = sizes_.stride,
                   .w = &call.in[1],
                   .losses = numbers,
                   .stream = call.stream};
    if (want_ == Want::lse) return rows;
    rows.targets = call.in[2].as<int32_t>() + chunk.begin;
    rows.z_loss = call.attrs.real("z_loss");
    if (want_ == Want::gradient) rows.dloss = call.in[3].as<float>();
    rows.groups = call.attrs.integer_or("groups", 0);
    rows.parts_rows = sizes_.rows;
    if (rows.groups > 0) rows.parts = call.in[want_ == Want::gradient ? 4 : 3].as<float>() + chunk.begin;
    return rows;
  }

  void multiply_gradients(const CudaCall& call, const Chunk& chunk, const std::byte* x, std::byte* dlogits,
                          std::byte* scratch) const {
    std::byte* dx = call.out[1].as<std::byte>() + chunk.begin * sizes_.hidden * size_of(sizes_.dtype);
    library_.run(*chunk.dx, {dlogits, call.in[1].data, dx}, scratch, call.stream, call.check);
    bool add = chunk.begin > 0 || call.accumulate();
    library_.run(*chunk.dw, {dlogits, x, call.out[0].data, nullptr, nullptr, add ? SumState::running : SumState::fresh},
                 scratch, call.stream, call.check);
  }

  HeadLossSizes sizes_;
  GemmLibrary& library_;
  Want want_;
  std::vector<Chunk> chunks_;
};

template <Want want>
std::unique_ptr<PreparedCudaKernel> prepare(const CudaPreparation& p) {
  return std::make_unique<HeadLoss>(p, want);
}

}  // namespace

const CudaKernel head_loss{.prepare = prepare<Want::loss>};
const CudaKernel head_loss_backward{.prepare = prepare<Want::gradient>};
const CudaKernel head_lse{.prepare = prepare<Want::lse>};

}  // namespace sextant::cuda
