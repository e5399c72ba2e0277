#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "exec/alibi.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/attend.h"
#include "exec/cpu/kernels/attend_backward.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/ring_pieces.h"
#include "ops/attention_scale.h"
#include "ops/attention_window.h"
#include "targets/local_heads.h"

namespace sextant::cpu {

namespace {

// Packed q|k|v rows to k|v rows, and back.
void take_kv(const KernelCall& call) {
  int64_t width = call.in[0].shape.last(), kv = call.out[0].shape.last(), size = size_of(call.in[0].dtype);
  const std::byte* from = call.in[0].as<const std::byte>();
  std::byte* to = call.out[0].as<std::byte>();
  for_blocks(call.team, call.out[0].shape.rows(), rows_per_task(kv), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      std::memcpy(to + row * kv * size, from + (row * width + width - kv) * size, static_cast<size_t>(kv * size));
  });
}

void join(const KernelCall& call) {
  int64_t q = call.in[0].shape.last(), kv = call.in[1].shape.last(), size = size_of(call.in[0].dtype);
  std::byte* to = call.out[0].as<std::byte>();
  for_blocks(call.team, call.out[0].shape.rows(), rows_per_task(q + kv), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      std::memcpy(to + row * (q + kv) * size, call.in[0].as<const std::byte>() + row * q * size,
                  static_cast<size_t>(q * size));
      std::memcpy(to + (row * (q + kv) + q) * size, call.in[1].as<const std::byte>() + row * kv * size,
                  static_cast<size_t>(kv * size));
    }
  });
}

// Rows of attention's output, `y_stride` apart, with the log of each row's sum of exponentials.
template <class T>
struct WeightedRows {
  T* y;
  int64_t y_stride;
  T* lse;
};

// Adds the rows of a block to those of `to`, each weighted by the exponential of its lse.
template <class T>
void merge(const WeightedRows<T>& to, const WeightedRows<T>& block, int64_t queries, int64_t dim) {
  for (int64_t i = 0; i < queries; ++i) {
    if (std::isinf(block.lse[i])) continue;  // all keys of the block lie before the query's range
    T top = std::max(to.lse[i], block.lse[i]);
    T a = std::exp(to.lse[i] - top), b = std::exp(block.lse[i] - top);
    T sum = a + b;
    T* y = to.y + i * to.y_stride;
    const T* block_y = block.y + i * block.y_stride;
    for (int64_t j = 0; j < dim; ++j) y[j] = (a * y[j] + b * block_y[j]) / sum;
    to.lse[i] = top + std::log(sum);
  }
}

// Where documents begin, one for each local query of sequence b; null where they are together.
const int32_t* ring_begins(const KernelCall& call, int64_t b) {
  for (const Tensor& tensor : call.in)
    if (tensor.dtype == DType::i32) return tensor.as<const int32_t>() + b * tensor.shape[1];
  return nullptr;
}

class StepKernel final : public PreparedKernel {
 public:
  explicit StepKernel(const Preparation& p)
      : pairs_(visible_pairs(p.program, p.op, p.at, p.program[p.op.inputs[0]], p.program[p.op.inputs[1]])),
        first_(p.op.attrs.integer("step") == 0) {}

  void run(const KernelCall& call) override {
    for_real_type(call.in[0].dtype, [&]<class T>() { run_as<T>(call); });
  }

 private:
  template <class T>
  void run_as(const KernelCall& call) {
    const LocalShape& shape = call.in[0].shape;
    int64_t length = shape[1], width = shape[2];
    LocalHeads heads = local_heads(call.attrs, width);
    T *y = call.out[0].as<T>(), *lse = call.out[1].as<T>();
    if (first_) {
      std::fill_n(y, call.out[0].count(), T(0));
      std::fill_n(lse, call.out[1].count(), -std::numeric_limits<T>::infinity());
    }
    int64_t keys_in_kv = call.in[1].shape[1], kv_width = call.in[1].shape[2];
    const AttentionDropout dropout(call.attrs, call.in, call.out[0]);
    call.team.parallel_for(shape[0] * heads.q, [&](int64_t task, int thread) {
      int64_t b = task / heads.q, head = task % heads.q, kv = heads.kv_of(head);
      const T* q = call.in[0].as<T>() + b * length * width + heads.q_at(head);
      const T* rows = call.in[1].as<T>() + b * keys_in_kv * kv_width;
      const T *k = rows + kv * heads.dim, *v = rows + heads.k_width() + kv * heads.value_dim;
      std::byte* scratch = call.workspace + thread * ring_step_scratch(heads.widest());
      T* block_y = reinterpret_cast<T*>(scratch);
      T* block_lse = block_y + kQueriesPerBlock * heads.value_dim;
      const int32_t* begins = ring_begins(call, b);
      for (const PiecePair& pair : pairs_) {
        for (int64_t first = 0; first < pair.q.count; first += kQueriesPerBlock) {
          int64_t queries = std::min(kQueriesPerBlock, pair.q.count - first), row = pair.q.local + first;
          attend(Attend<T>{.queries = queries,
                           .first = first + pair.diagonal,
                           .dim = heads.dim,
                           .value_dim = heads.value_dim,
                           .q = {q + row * width, width},
                           .k = {k + pair.k.local * kv_width, kv_width},
                           .v = {v + pair.k.local * kv_width, kv_width},
                           .y = block_y,
                           .y_stride = heads.value_dim,
                           .lse = block_lse,
                           .keys = pair.k.count,
                           .begins = begins ? begins + row : nullptr,
                           .slope = static_cast<T>(alibi_slope_of(call.attrs, call.out[0], head)),
                           .places = {pair.distance(first), pair.k.global, pair.q.stride},
                           .scale = static_cast<T>(attention_scale_of(call.attrs)),
                           .range = key_range_of(call.attrs),
                           .dropout = dropout.of(b, head, pair.q.global_at(first), pair.k.global, pair.q.stride)},
                 scratch + ring_block_bytes(heads.widest()));
          merge<T>({y + (b * length + row) * heads.y_width() + heads.y_at(head), heads.y_width(),
                    lse + (b * heads.q + head) * length + row},
                   {block_y, heads.value_dim, block_lse}, queries, heads.value_dim);
        }
      }
    });
  }

  std::vector<PiecePair> pairs_;
  bool first_;
};

class StepBackwardKernel final : public PreparedKernel {
 public:
  explicit StepBackwardKernel(const Preparation& p)
      : pairs_(visible_pairs(p.program, p.op, p.at, p.program[p.op.inputs[1]], p.program[p.op.inputs[4]])),
        first_(p.op.attrs.integer("step") == 0) {}

  void run(const KernelCall& call) override {
    for_real_type(call.in[0].dtype, [&]<class T>() { run_as<T>(call); });
  }

 private:
  // All query heads of one key head belong to one task: their contributions to dk and dv add up in a fixed order.
  template <class T>
  void run_as(const KernelCall& call) {
    const LocalShape& shape = call.in[1].shape;
    int64_t length = shape[1], width = shape[2], keys_in_kv = call.in[4].shape[1], kv_width = call.in[4].shape[2];
    LocalHeads heads = local_heads(call.attrs, width);
    if (first_) {
      std::fill_n(call.out[0].as<T>(), call.out[0].count(), T(0));
      std::fill_n(call.out[1].as<T>(), call.out[1].count(), T(0));
    }
    int64_t group = heads.q / heads.kv, scratch = ring_step_backward_scratch(heads.widest());
    const AttentionDropout dropout(call.attrs, call.in, call.in[0]);
    call.team.parallel_for(shape[0] * heads.kv, [&](int64_t task, int thread) {
      int64_t b = task / heads.kv, kv = task % heads.kv;
      const int32_t* begins = ring_begins(call, b);
      for (int64_t head = kv * group; head < (kv + 1) * group; ++head)
        for (const PiecePair& pair : pairs_) {
          int64_t q_row = b * length + pair.q.local, kv_row = (b * keys_in_kv + pair.k.local) * kv_width;
          int64_t k_at = kv_row + kv * heads.dim, v_at = kv_row + heads.k_width() + kv * heads.value_dim;
          int64_t y_at = q_row * heads.y_width() + heads.y_at(head);
          attend_backward(
              AttendGradient<T>{.queries = pair.q.count,
                                .keys = pair.k.count,
                                .diagonal = pair.diagonal,
                                .dim = heads.dim,
                                .value_dim = heads.value_dim,
                                .q = {call.in[1].as<T>() + q_row * width + heads.q_at(head), width},
                                .k = {call.in[4].as<T>() + k_at, kv_width},
                                .v = {call.in[4].as<T>() + v_at, kv_width},
                                .y = {call.in[2].as<T>() + y_at, heads.y_width()},
                                .dy = {call.in[0].as<T>() + y_at, heads.y_width()},
                                .lse = call.in[3].as<T>() + (b * heads.q + head) * length + pair.q.local,
                                .dq = call.out[0].as<T>() + q_row * heads.q_width() + heads.q_at(head),
                                .dq_stride = heads.q_width(),
                                .dq_write = Write::add,
                                .dk = call.out[1].as<T>() + k_at,
                                .dv = call.out[1].as<T>() + v_at,
                                .dkv_stride = kv_width,
                                .begins = begins ? begins + pair.q.local : nullptr,
                                .slope = static_cast<T>(alibi_slope_of(call.attrs, call.in[0], head)),
                                .places = {pair.distance(), pair.k.global, pair.q.stride},
                                .scale = static_cast<T>(attention_scale_of(call.attrs)),
                                .range = key_range_of(call.attrs),
                                .dropout = dropout.of(b, head, pair.q.global, pair.k.global, pair.q.stride)},
              call.workspace + thread * scratch);
        }
    });
  }

  std::vector<PiecePair> pairs_;
  bool first_;
};

class ShiftKernel final : public PreparedKernel {
 public:
  explicit ShiftKernel(const Preparation& p) : wire_(p.wire), axis_(p.op.attrs.text_or("axis", "")) {
    auto axis = p.program.mesh.find(axis_);
    BUG_IF(!axis, "{}: the mesh has no axis {}", p.op.path, axis_);
    group_ = group_of_ranks(group_of(p.program.mesh, p.rank, std::vector<int>{*axis}), p.rank);
    BUG_IF(!wire_ && group_.size() > 1, "{} talks to {} ranks and has no wire", p.op.path, group_.size());
  }

  void run(const KernelCall& call) override {
    size_t bytes = static_cast<size_t>(call.in[0].count() * size_of(call.in[0].dtype));
    if (group_.size() == 1) {
      std::memcpy(call.out[0].data, call.in[0].data, bytes);
      return;
    }
    int n = group_.size(), next = group_.ranks[static_cast<size_t>((group_.self + 1) % n)],
        previous = group_.ranks[static_cast<size_t>((group_.self + n - 1) % n)];
    Channel& channel = wire_->channel;
    Ticket in = channel.transport.receive(previous, channel.tag, {call.out[0].as<std::byte>(), bytes});
    Ticket out = channel.transport.send(next, channel.tag, {call.in[0].as<const std::byte>(), bytes});
    channel.transport.wait(in);
    channel.transport.wait(out);
    channel.bytes_sent += static_cast<int64_t>(bytes);
    wire_->count(axis_, static_cast<int64_t>(bytes));
  }

 private:
  Wire* wire_;
  std::string axis_;
  Group group_;
};

template <class Kernel>
std::unique_ptr<PreparedKernel> prepare(const Preparation& p) {
  return std::make_unique<Kernel>(p);
}

}  // namespace

const CpuKernel kv_of{.run = take_kv};
const CpuKernel join_qkv{.run = join};
const CpuKernel ring_shift{.prepare = prepare<ShiftKernel>};
const CpuKernel attention_step{.prepare = prepare<StepKernel>};
const CpuKernel attention_step_backward{.prepare = prepare<StepBackwardKernel>};

}  // namespace sextant::cpu
