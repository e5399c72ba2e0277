#include <vector>

#include "base/error.h"
#include "exec/cuda/attention/alibi.h"
#include "exec/cuda/attention/dropout.h"
#include "exec/cuda/attention/own_attention.h"
#include "exec/cuda/runtime/check.h"
#include "exec/cuda/runtime/kernel.h"
#include "exec/ring_pieces.h"
#include "ops/attention_scale.h"
#include "ops/attention_window.h"
#include "targets/local_heads.h"

namespace sextant::cuda {

namespace {

// A column block of rows, copied into a column block of other rows; both begin at a column of their own.
struct Columns {
  const Tensor& rows;
  int64_t at;
};

void copy_columns(const Columns& from, const Columns& to, int64_t width, cudaStream_t stream) {
  size_t size = static_cast<size_t>(size_of(from.rows.dtype));
  auto bytes = [size](int64_t elements) { return static_cast<size_t>(elements) * size; };
  if (from.rows.count() == 0) return;
  check_cuda(cudaMemcpy2DAsync(to.rows.as<std::byte>() + bytes(to.at), bytes(to.rows.shape.last()),
                               from.rows.as<std::byte>() + bytes(from.at), bytes(from.rows.shape.last()), bytes(width),
                               static_cast<size_t>(from.rows.shape.rows()), cudaMemcpyDeviceToDevice, stream),
             "copying keys and values");
}

// Packed q|k|v rows to k|v rows, and back.
void take_kv(const CudaCall& call) {
  int64_t kv = call.out[0].shape.last();
  copy_columns({call.in[0], call.in[0].shape.last() - kv}, {call.out[0], 0}, kv, call.stream);
}

void join(const CudaCall& call) {
  int64_t q = call.in[0].shape.last(), kv = call.in[1].shape.last();
  copy_columns({call.in[0], 0}, {call.out[0], 0}, q, call.stream);
  copy_columns({call.in[1], 0}, {call.out[0], q}, kv, call.stream);
}

// Where documents begin, one for each local query; null where they are together.
const int32_t* ring_begins(std::span<const Tensor> in) {
  for (const Tensor& tensor : in)
    if (tensor.dtype == DType::i32) return tensor.as<const int32_t>();
  return nullptr;
}

// Describes one pair of pieces to the kernels: rows of packed queries, and rows of keys next to their values.
void fill_block(AttentionBlock& block, const PiecePair& pair, const CudaCall& call, const Tensor& qkv,
                const Tensor& kv) {
  const Attrs& attrs = call.attrs;
  const int32_t* begins = ring_begins(call.in);
  block.begins = begins ? begins + pair.q.local : nullptr;
  LocalHeads heads = local_heads(attrs, qkv.shape[2]);
  int64_t size = size_of(qkv.dtype), width = qkv.shape[2], kv_width = kv.shape[2];
  std::byte* keys = kv.as<std::byte>() + pair.k.local * kv_width * size;
  block.dtype = qkv.dtype;
  block.batch = qkv.shape[0];
  block.heads = heads.q;
  block.kv_heads = heads.kv;
  block.dim = heads.dim;
  block.value_dim = heads.value_dim;
  block.scale = static_cast<float>(attention_scale_of(attrs));
  block.range = key_range_of(attrs);
  block.key_0 = pair.k.global;
  block.queries = pair.q.count;
  block.keys = pair.k.count;
  block.diagonal = pair.diagonal;
  block.distance = pair.distance();
  block.stride = pair.q.stride;
  block.q = {qkv.as<std::byte>() + pair.q.local * width * size, qkv.shape[1] * width, heads.dim, width};
  block.k = {keys, kv.shape[1] * kv_width, heads.dim, kv_width};
  block.v = {keys + heads.k_width() * size, kv.shape[1] * kv_width, heads.value_dim, kv_width};
}

// Rows [b, length, width] from local row `row` and column `at` on.
HeadRows rows_from(const Tensor& tensor, int64_t row, int64_t at, int64_t dim) {
  int64_t width = tensor.shape[2];
  return {tensor.as<std::byte>() + (row * width + at) * size_of(tensor.dtype), tensor.shape[1] * width, dim, width};
}

void clear(const Tensor& tensor, cudaStream_t stream) {
  check_cuda(cudaMemsetAsync(tensor.data, 0, static_cast<size_t>(tensor.count() * size_of(tensor.dtype)), stream),
             "clearing a sum");
}

class StepKernel final : public PreparedCudaKernel {
 public:
  explicit StepKernel(const CudaPreparation& p)
      : pairs_(visible_pairs(p.program, p.op, p.at, p.program[p.op.inputs[0]], p.program[p.op.inputs[1]])),
        first_(p.op.attrs.integer("step") == 0) {}

  void launch(const CudaCall& call) override {
    const Tensor &y = call.out[0], &lse = call.out[1];
    if (first_) {
      clear(y, call.stream);
      clear_lse(lse.as<float>(), lse.count(), call.stream);
    }
    for (const PiecePair& pair : pairs_) {
      AttentionForward block;
      fill_block(block, pair, call, call.in[0], call.in[1]);
      set_alibi(block, call.attrs, y);
      set_dropout(block, call.attrs, call.in, y, {pair.q.global, pair.k.global});
      block.y = rows_from(y, pair.q.local, 0, block.value_dim);
      block.lse = lse.as<float>() + pair.q.local;
      block.lse_length = lse.shape[2];
      block.onto = Onto::existing;
      attend(block, call.stream);
    }
  }

 private:
  std::vector<PiecePair> pairs_;
  bool first_;
};

class StepBackwardKernel final : public PreparedCudaKernel {
 public:
  explicit StepBackwardKernel(const CudaPreparation& p)
      : pairs_(visible_pairs(p.program, p.op, p.at, p.program[p.op.inputs[1]], p.program[p.op.inputs[4]])),
        first_(p.op.attrs.integer("step") == 0) {}

  void launch(const CudaCall& call) override {
    const Tensor &dy = call.in[0], &lse = call.in[3], &kv = call.in[4], &dq = call.out[0], &dkv = call.out[1];
    if (first_) {
      clear(dq, call.stream);
      clear(dkv, call.stream);
    }
    if (pairs_.empty()) return;
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
    for (const PiecePair& pair : pairs_) {
      AttentionGradient block;
      fill_block(block, pair, call, call.in[1], kv);
      block.lse = lse.as<float>() + pair.q.local;
      block.dots = dots + pair.q.local;
      block.lse_length = lse.shape[2];
      set_alibi(block, call.attrs, dy);
      set_dropout(block, call.attrs, call.in, dy, {pair.q.global, pair.k.global});
      block.dy = rows_from(dy, pair.q.local, 0, heads.value_dim);
      block.dq = rows_from(dq, pair.q.local, 0, heads.dim);
      block.dk = rows_from(dkv, pair.k.local, 0, heads.dim);
      block.dv = rows_from(dkv, pair.k.local, heads.k_width(), heads.value_dim);
      block.onto = Onto::existing;
      attend_backward(block, call.stream);
    }
  }

 private:
  std::vector<PiecePair> pairs_;
  bool first_;
};

template <class Kernel>
std::unique_ptr<PreparedCudaKernel> prepare(const CudaPreparation& p) {
  return std::make_unique<Kernel>(p);
}

}  // namespace

const CudaKernel kv_of{.launch = take_kv};
const CudaKernel join_qkv{.launch = join};
const CudaKernel attention_step{.prepare = prepare<StepKernel>};
const CudaKernel attention_step_backward{.prepare = prepare<StepBackwardKernel>};

}  // namespace sextant::cuda
