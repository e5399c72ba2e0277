#include <array>
#include <functional>
#include <optional>

#include "base/error.h"
#include "exec/cuda/attention/alibi.h"
#include "exec/cuda/attention/attention_library.h"
#include "exec/cuda/attention/document_batch.h"
#include "exec/cuda/attention/dropout.h"
#include "exec/cuda/attention/own_attention.h"
#include "exec/cuda/runtime/conditional_work.h"
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

// `done`: as in AttentionBlock.
void own_forward(const CudaCall& call, const int32_t* done = nullptr) {
  AttentionForward block;
  fill_block(block, call.attrs, call.in[0], call.out[1]);
  block.begins = begins_of(call.in, kBegins);
  block.done = done;
  block.y = part(call.out[0], 0, block.value_dim);
  set_alibi(block, call.attrs, call.out[0]);
  set_dropout(block, call.attrs, call.in, call.out[0]);
  attend(block, call.stream);
}

void own_backward(const CudaCall& call, float* dots, const int32_t* done = nullptr) {
  const Tensor &dy = call.in[0], &dqkv = call.out[0];
  LocalHeads heads = local_heads(call.attrs, call.in[1].shape[2]);
  output_dots({.dtype = dy.dtype,
               .batch = dy.shape[0],
               .length = dy.shape[1],
               .heads = heads.q,
               .dim = heads.value_dim,
               .dy = dy.data,
               .y = call.in[2].data,
               .dots = dots,
               .done = done},
              call.stream);
  AttentionGradient block;
  fill_block(block, call.attrs, call.in[1], call.in[3]);
  block.begins = begins_of(call.in, kBackwardBegins);
  block.done = done;
  block.dy = part(dy, 0, heads.value_dim);
  set_alibi(block, call.attrs, dy);
  set_dropout(block, call.attrs, call.in, dy);
  block.dots = dots;
  block.dq = part(dqkv, heads.q_at(0), heads.dim);
  block.dk = part(dqkv, heads.k_at(0), heads.dim);
  block.dv = part(dqkv, heads.v_at(0), heads.value_dim);
  attend_backward(block, call.stream);
}

class OwnForward final : public PreparedCudaKernel {
 public:
  void launch(const CudaCall& call) override { own_forward(call); }
};

class OwnBackward final : public PreparedCudaKernel {
 public:
  void launch(const CudaCall& call) override { own_backward(call, reinterpret_cast<float*>(call.workspace)); }
};

enum class Direction : uint8_t { forward, backward };

// Either direction through cuDNN.
class LibraryKernel final : public PreparedCudaKernel {
 public:
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

// Plans for the parts of documents that are ragged batches.
using RaggedPlans = std::array<const AttentionPlan*, kDocumentParts>;

// None unless cuDNN has all of them.
std::optional<RaggedPlans> ragged_plans(AttentionLibrary& library, const AttentionShape& shape, Direction direction) {
  RaggedPlans plans{};
  const std::array<DocumentPart, kDocumentParts> parts = document_parts(shape);
  for (size_t part = 0; part < kDocumentParts; ++part) {
    AttentionShape of_part = shape_of_part(shape, parts[part]);
    plans[part] = direction == Direction::forward ? library.forward(of_part) : library.backward(of_part);
    if (!plans[part]) return std::nullopt;
  }
  return plans;
}

// Documents as ragged batches through cuDNN; those of a microbatch that do not fit into them, by our own kernels. What
// is done is decided on the device: batches without documents, and our own kernels where all fit, are left out.
class RaggedKernel : public PreparedCudaKernel {
 public:
  RaggedKernel(const AttentionLibrary& library, const RaggedPlans& plans, const AttentionShape& shape)
      : shape_(shape), library_(library), plans_(plans) {}

 protected:
  // Puts our own kernels on a stream; `done` as in AttentionBlock.
  using OwnKernels = std::function<void(cudaStream_t stream, const int32_t* done)>;

  void put(const DocumentBatch& documents, AttentionOperands operands, std::byte* scratch, cudaStream_t stream,
           const OwnKernels& own) const {
    operands.documents = &documents;
    auto run_part = [&](size_t part, cudaStream_t on) {
      operands.part = part;
      library_.run(*plans_[part], operands, scratch, on);
    };
    std::array<ConditionalWork::Work, kDocumentWays> ways;
    for (size_t way = 0; way < kDocumentWays; ++way)
      ways[way] = [&run_part, way = static_cast<DocumentWay>(way)](cudaStream_t on) {
        for (size_t part = 0; part < kDocumentParts; ++part)
          if (has_documents(way, part)) run_part(part, on);
      };
    ways[static_cast<size_t>(DocumentWay::own)] = [&](cudaStream_t on) { own(on, nullptr); };
    conditional_.put(stream, documents.way, ways, [&](cudaStream_t on) {
      for (size_t part = 0; part < kDocumentParts; ++part) run_part(part, on);
      own(on, documents.fits);
    });
  }

  AttentionShape shape_;

 private:
  const AttentionLibrary& library_;
  RaggedPlans plans_;
  ConditionalWork conditional_;
};

CudaCall on_stream(const CudaCall& call, cudaStream_t stream) {
  CudaCall other = call;
  other.stream = stream;
  return other;
}

class RaggedForward final : public RaggedKernel {
 public:
  using RaggedKernel::RaggedKernel;

  void launch(const CudaCall& call) override {
    DocumentBatchSizes sizes(shape_, DocumentBatchSizes::Pass::forward);
    DocumentBatch documents(shape_, sizes, call.workspace);
    find_documents(begins_of(call.in, kBegins), documents, call.stream);
    put(documents, {.qkv = call.in[0].data, .y = call.out[0].data, .lse = call.out[1].data},
        call.workspace + sizes.library, call.stream,
        [&](cudaStream_t on, const int32_t* done) { own_forward(on_stream(call, on), done); });
    stats_to_lse(documents, call.out[1].as<float>(), call.stream);
  }
};

class RaggedBackward final : public RaggedKernel {
 public:
  using RaggedKernel::RaggedKernel;

  void launch(const CudaCall& call) override {
    DocumentBatchSizes sizes(shape_, DocumentBatchSizes::Pass::backward);
    DocumentBatch documents(shape_, sizes, call.workspace);
    find_documents(begins_of(call.in, kBackwardBegins), documents, call.stream);
    lse_to_stats(documents, call.in[3].as<const float>(), call.stream);
    put(documents,
        {.qkv = call.in[1].data,
         .y = call.in[2].data,
         .lse = call.in[3].data,
         .dy = call.in[0].data,
         .dqkv = call.out[0].data},
        call.workspace + sizes.library, call.stream,
        [&](cudaStream_t on, const int32_t* done) { own_backward(on_stream(call, on), documents.dots, done); });
    if (documents.dk) join_kv_gradients(documents, call.out[0].data, call.stream);
  }
};

std::unique_ptr<PreparedCudaKernel> prepare_forward(const CudaPreparation& p) {
  AttentionShape shape = attention_shape(p.op.attrs, types_of(p.in));
  if (uses_ragged_batch(p.op.attrs, shape))
    if (auto plans = ragged_plans(p.device.attention(), shape, Direction::forward))
      return std::make_unique<RaggedForward>(p.device.attention(), *plans, shape);
  shape.capacity = 0;
  if (uses_library_attention(p.op.attrs, shape))
    if (const AttentionPlan* plan = p.device.attention().forward(shape))
      return std::make_unique<LibraryKernel>(p.device.attention(), *plan, Direction::forward);
  return std::make_unique<OwnForward>();
}

std::unique_ptr<PreparedCudaKernel> prepare_backward(const CudaPreparation& p) {
  AttentionShape shape = attention_backward_shape(p.op.attrs, types_of(p.in));
  if (uses_ragged_batch(p.op.attrs, shape))
    if (auto plans = ragged_plans(p.device.attention(), shape, Direction::backward))
      return std::make_unique<RaggedBackward>(p.device.attention(), *plans, shape);
  shape.capacity = 0;
  if (uses_library_attention(p.op.attrs, shape))
    if (const AttentionPlan* plan = p.device.attention().backward(shape))
      return std::make_unique<LibraryKernel>(p.device.attention(), *plan, Direction::backward);
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
