#include "base/error.h"
#include "exec/attention_scale.h"
#include "exec/cpu/kernels/heads.h"
#include "exec/cuda/attention/alibi.h"
#include "exec/cuda/attention/attention_library.h"
#include "exec/cuda/attention/own_attention.h"
#include "exec/cuda/runtime/kernel.h"

namespace sextant::cuda {

namespace {

using cpu::Heads;

AttentionShape shape_of(const Attrs& attrs, const Tensor& qkv, Documents documents) {
  Heads heads = cpu::local_heads(attrs, qkv.shape[2]);
  return {qkv.shape[0],
          qkv.shape[1],
          heads.q,
          heads.kv,
          heads.dim,
          documents,
          static_cast<float>(attention_scale_of(attrs))};
}

// One head part of packed rows of `width` elements, beginning at element `at`.
HeadRows part(const Tensor& rows, int64_t at, int64_t dim) {
  int64_t width = rows.shape[2];
  return {rows.as<std::byte>() + at * size_of(rows.dtype), rows.shape[1] * width, dim, width};
}

// Where the positions stand at which documents begin, among the inputs: last, where they are at all.
constexpr size_t kBegins = 1, kBackwardBegins = 4;

Documents documents_of(std::span<const Tensor> in, size_t at) {
  return in.size() > at ? Documents::apart : Documents::together;
}

AttentionShape forward_shape(const Attrs& attrs, std::span<const Tensor> in) {
  return shape_of(attrs, in[0], documents_of(in, kBegins));
}

AttentionShape backward_shape(const Attrs& attrs, std::span<const Tensor> in) {
  return shape_of(attrs, in[1], documents_of(in, kBackwardBegins));
}

const int32_t* begins_of(std::span<const Tensor> in, size_t at) {
  return in.size() > at ? in[at].as<int32_t>() : nullptr;
}

void fill_block(AttentionBlock& block, const Attrs& attrs, const Tensor& qkv, const Tensor& lse) {
  Heads heads = cpu::local_heads(attrs, qkv.shape[2]);
  block.dtype = qkv.dtype;
  block.batch = qkv.shape[0];
  block.heads = heads.q;
  block.kv_heads = heads.kv;
  block.dim = heads.dim;
  block.scale = static_cast<float>(attention_scale_of(attrs));
  block.queries = block.keys = block.lse_length = qkv.shape[1];
  block.q = part(qkv, heads.q_at(0), heads.dim);
  block.k = part(qkv, heads.k_at(0), heads.dim);
  block.v = part(qkv, heads.v_at(0), heads.dim);
  block.lse = lse.as<float>();
}

class OwnForward final : public PreparedCudaKernel {
 public:
  void launch(const CudaCall& call) override {
    AttentionForward block;
    fill_block(block, call.attrs, call.in[0], call.out[1]);
    block.begins = begins_of(call.in, kBegins);
    block.y = part(call.out[0], 0, block.dim);
    set_alibi(block, call.attrs, call.out[0], 0);
    attend(block, call.stream);
  }
};

class OwnBackward final : public PreparedCudaKernel {
 public:
  void launch(const CudaCall& call) override {
    const Tensor &dy = call.in[0], &dqkv = call.out[0];
    Heads heads = cpu::local_heads(call.attrs, call.in[1].shape[2]);
    float* dots = reinterpret_cast<float*>(call.workspace);
    output_dots({.dtype = dy.dtype,
                 .batch = dy.shape[0],
                 .length = dy.shape[1],
                 .heads = heads.q,
                 .dim = heads.dim,
                 .dy = dy.data,
                 .y = call.in[2].data,
                 .dots = dots},
                call.stream);
    AttentionGradient block;
    fill_block(block, call.attrs, call.in[1], call.in[3]);
    block.begins = begins_of(call.in, kBackwardBegins);
    block.dy = part(dy, 0, heads.dim);
    set_alibi(block, call.attrs, dy, 0);
    block.dots = dots;
    block.dq = part(dqkv, heads.q_at(0), heads.dim);
    block.dk = part(dqkv, heads.k_at(0), heads.dim);
    block.dv = part(dqkv, heads.v_at(0), heads.dim);
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

// cuDNN's plans know no ALiBi.
bool library_takes(const Attrs& attrs, const Tensor& qkv, const AttentionShape& shape) {
  return !has_alibi(attrs) && attention_library_takes(qkv.dtype, shape);
}

std::unique_ptr<PreparedCudaKernel> prepare_forward(const CudaPreparation& p) {
  AttentionShape shape = forward_shape(p.op.attrs, p.in);
  if (library_takes(p.op.attrs, p.in[0], shape))
    if (const AttentionPlan* plan = p.device.attention().forward(shape))
      return std::make_unique<LibraryKernel>(p.device.attention(), *plan, LibraryKernel::Direction::forward);
  return std::make_unique<OwnForward>();
}

std::unique_ptr<PreparedCudaKernel> prepare_backward(const CudaPreparation& p) {
  AttentionShape shape = backward_shape(p.op.attrs, p.in);
  if (library_takes(p.op.attrs, p.in[1], shape))
    if (const AttentionPlan* plan = p.device.attention().backward(shape))
      return std::make_unique<LibraryKernel>(p.device.attention(), *plan, LibraryKernel::Direction::backward);
  return std::make_unique<OwnBackward>();
}

Bytes forward_workspace(const WorkspaceQuery& query) {
  AttentionShape shape = forward_shape(query.attrs, query.in);
  return library_takes(query.attrs, query.in[0], shape) ? attention_library_scratch(shape) : Bytes{};
}

// Our own kernels need Σ dy·y of each row, less than cuDNN does.
Bytes backward_workspace(const WorkspaceQuery& query) {
  AttentionShape shape = backward_shape(query.attrs, query.in);
  if (library_takes(query.attrs, query.in[1], shape))
    return attention_library_backward_scratch(shape, query.repeatable ? Determinism::repeatable : Determinism::fast);
  return {shape.batch * shape.heads * shape.length * static_cast<int64_t>(sizeof(float))};
}

}  // namespace

void refuse_head_size(int64_t dim) {
  throw RunError("attention", fmt::format("head_dim is {}, and the CUDA kernels hold {} at most", dim, kLargestHead));
}

const CudaKernel attention{.workspace = forward_workspace, .prepare = prepare_forward};
const CudaKernel attention_backward{.workspace = backward_workspace, .prepare = prepare_backward};

}  // namespace sextant::cuda
