#include "base/error.h"
#include "exec/cuda/attention/alibi.h"
#include "exec/cuda/attention/attention_library.h"
#include "exec/cuda/attention/dropout.h"
#include "exec/cuda/attention/own_attention.h"
#include "exec/cuda/runtime/kernel.h"
#include "ops/attention_scale.h"
#include "ops/attention_window.h"
#include "targets/cuda/attention_sizes.h"
#include "targets/local_heads.h"

namespace sextant::cuda {

namespace {

// One head part of packed rows of `width` elements, beginning at element `at`.
HeadRows part(const Tensor& rows, int64_t at, int64_t dim) {
  int64_t width = rows.shape[2];
  return {rows.as<std::byte>() + at * size_of(rows.dtype), rows.shape[1] * width, dim, width};
}

const int32_t* begins_of(std::span<const Tensor> in, size_t at) {
  return in.size() > at && in[at].dtype == DType::i32 ? in[at].as<int32_t>() : nullptr;
}

void fill_block(AttentionBlock& block, const Attrs& attrs, const Tensor& qkv, const Tensor& lse) {
  LocalHeads heads = local_heads(attrs, qkv.shape[2]);
  block.dtype = qkv.dtype;
  block.batch = qkv.shape[0];
  block.heads = heads.q;
  block.kv_heads = heads.kv;
  block.dim = heads.dim;
  block.value_dim = heads.value_dim;
  block.scale = static_cast<float>(attention_scale_of(attrs));
  block.range = key_range_of(attrs);
  block.queries = block.keys = block.lse_length = qkv.shape[1];
  block.q = part(qkv, heads.q_at(0), heads.dim);
  block.k = part(qkv, heads.k_at(0), heads.dim);
  block.v = part(qkv, heads.v_at(0), heads.value_dim);
  block.lse = lse.as<float>();
}

class OwnForward final : public PreparedCudaKernel {
 public:
  void launch(const CudaCall& call) override {
    AttentionForward block;
    fill_block(block, call.attrs, call.in[0], call.out[1]);
    block.begins = begins_of(call.in, kBegins);
    block.y = part(call.out[0], 0, block.value_dim);
    set_alibi(block, call.attrs, call.out[0]);
    set_dropout(block, call.attrs, call.in, call.out[0]);
    attend(block, call.stream);
  }
};

class OwnBackward final : public PreparedCudaKernel {
 public:
  void launch(const CudaCall& call) override {
    const Tensor &dy = call.in[0], &dqkv = call.out[0];
    LocalHeads heads = local_heads(call.attrs, call.in[1].shape[2]);
    float* dots = reinterpret_cast<float*>(call.workspace);
    output_dots({.dtype = dy.dtype,
                 .batch = dy.shape[0],
                 .length = dy.shape[1],
                 .heads = heads.q,
                 .dim = heads.value_dim,
                 .dy = dy.data,
                 .y = call.in[2].data,
                 .dots = dots},
                call.stream);
    AttentionGradient block;
    fill_block(block, call.attrs, call.in[1], call.in[3]);
    block.begins = begins_of(call.in, kBackwardBegins);
    block.dy = part(dy, 0, heads.value_dim);
    set_alibi(block, call.attrs, dy);
    set_dropout(block, call.attrs, call.in, dy);
    block.dots = dots;
    block.dq = part(dqkv, heads.q_at(0), heads.dim);
    block.dk = part(dqkv, heads.k_at(0), heads.dim);
    block.dv = part(dqkv, heads.v_at(0), heads.value_dim);
    attend_backward(block, call.stream);
  }
};

// Either direction through cuDNN.
class LibraryKernel final : public PreparedCudaKernel {
 public:
  enum class Direction : uint8_t { forward, backward };

  LibraryKernel(const AttentionLibrary& library, const AttentionPlan& plan, Direction direction)
      : library_(library), plan_(plan), direction_(direction) {}

  void launch(const CudaCall& call) override {
    AttentionOperands operands;
    if (direction_ == Direction::forward)
      operands = {.qkv = call.in[0].data,
                  .y = call.out[0].data,
                  .lse = call.out[1].data,
                  .begins = begins_of(call.in, kBegins)};
    else
      operands = {.qkv = call.in[1].data,
                  .y = call.in[2].data,
                  .lse = call.in[3].data,
                  .dy = call.in[0].data,
                  .dqkv = call.out[0].data,
                  .begins = begins_of(call.in, kBackwardBegins)};
    library_.run(plan_, operands, call.workspace, call.stream);
  }

 private:
  const AttentionLibrary& library_;
  const AttentionPlan& plan_;
  Direction direction_;
};

std::unique_ptr<PreparedCudaKernel> prepare_forward(const CudaPreparation& p) {
  AttentionShape shape = attention_shape(p.op.attrs, types_of(p.in));
  if (attention_goes_to_library(p.op.attrs, p.in[0].dtype, shape))
    if (const AttentionPlan* plan = p.device.attention().forward(shape))
      return std::make_unique<LibraryKernel>(p.device.attention(), *plan, LibraryKernel::Direction::forward);
  return std::make_unique<OwnForward>();
}

std::unique_ptr<PreparedCudaKernel> prepare_backward(const CudaPreparation& p) {
  AttentionShape shape = attention_backward_shape(p.op.attrs, types_of(p.in));
  if (attention_goes_to_library(p.op.attrs, p.in[1].dtype, shape))
    if (const AttentionPlan* plan = p.device.attention().backward(shape))
      return std::make_unique<LibraryKernel>(p.device.attention(), *plan, LibraryKernel::Direction::backward);
  return std::make_unique<OwnBackward>();
}

}  // namespace

void refuse_head_size(int64_t dim) {
  throw RunError("attention",
                 fmt::format("a head is {} wide, and the CUDA kernels hold {} at most", dim, kLargestHead));
}

const CudaKernel attention{.prepare = prepare_forward};
const CudaKernel attention_backward{.prepare = prepare_backward};

}  // namespace sextant::cuda
