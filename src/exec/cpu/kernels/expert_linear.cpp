#include <algorithm>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/expert_order.h"
#include "exec/cpu/kernels/gemm.h"
#include "exec/cpu/kernels/gemm_check.h"
#include "targets/cpu/expert_sizes.h"
#include "targets/gemm_check_sizes.h"
#include "targets/ordered_slots.h"
#include "targets/slot_experts.h"

namespace sextant::cpu {

namespace {

// Of slots: the weight holds the experts that attr tells. Of rows: this rank's may be some of them.
SlotExperts slot_experts(const KernelCall& call, int64_t expert_count) {
  const Tensor& chosen = call.in[2];
  if (!call.attrs.has("blocks")) return {.chosen = chosen.as<int32_t>()};
  return experts_of_rows(
      chosen.as<int32_t>(), chosen.shape.last(),
      {.experts = call.attrs.integer("experts"), .blocks = call.attrs.integer("blocks"), .held = expert_count});
}

// A thread's own, where products are checked.
std::byte* check_scratch(const KernelCall& call, int thread, const GemmCheckSizes& sizes) {
  return call.check ? call.check->scratch + thread * sizes.bytes() : nullptr;
}

enum class Rows : uint8_t { tokens, slots };

// Where the slots of an op's values stand: null where they stand as they are.
const int32_t* places_of_slots(const KernelCall& call) {
  if (!call.attrs.has("in_order")) return nullptr;
  return ordered_slots(call.in[3].as<int32_t>(), call.in[2].count(), call.in[4].as<int32_t>()).places;
}

// The row of a slot in a value of tokens or slots.
struct RowOfSlot {
  int64_t top_k;
  const int32_t* places;

  int64_t operator()(int32_t slot, Rows rows) const {
    if (rows == Rows::tokens) return slot / top_k;
    return places ? places[slot] : slot;
  }
};

// out = in·b(expert) row by row, where rows of either side are tokens or slots; onto tokens, their slots' are added up.
template <class T>
struct ExpertRows {
  SlotExperts experts;
  const int32_t* places;
  int64_t expert_count;  // of the weight's
  int64_t tokens, top_k;
  const T* in;
  Rows rows_in;
  int64_t inputs;
  T* out;
  Rows rows_out;
  int64_t outputs;
  Matrix<T> b;         // of expert 0, inputs × outputs
  int64_t b_elements;  // from one expert's to the next one's
};

// One block of tokens. What is added to a token comes in the order of its experts.
template <class T>
void multiply_block(const ExpertRows<T>& x, int64_t first_token, int64_t last_token, std::byte* memory,
                    const KernelCall& call, int thread) {
  ExpertRowsScratch at({x.top_k, x.expert_count, x.inputs, x.outputs, int64_t{sizeof(T)}});
  auto* order = reinterpret_cast<int32_t*>(memory);
  auto* offsets = reinterpret_cast<int32_t*>(memory + at.offsets);
  T *rows_in = reinterpret_cast<T*>(memory + at.rows_in), *rows_out = reinterpret_cast<T*>(memory + at.rows_out);
  sort_slots(
      x.experts, x.expert_count, (last_token - first_token) * x.top_k,
      [&](int64_t i) { return first_token * x.top_k + i; }, order, offsets);
  if (x.rows_out == Rows::tokens) std::fill(x.out + first_token * x.outputs, x.out + last_token * x.outputs, T{0});
  if (x.experts.rows > 0)  // a row may have no expert
    for (int64_t row = first_token; row < last_token; ++row)
      if (x.experts.of(row) < 0) std::fill_n(x.out + row * x.outputs, x.outputs, T{0});
  const RowOfSlot row_of{x.top_k, x.places};
  for (int64_t e = 0; e < x.expert_count; ++e) {
    Matrix<T> b = x.b;
    b.data += e * x.b_elements;
    for (int64_t begin = offsets[e]; begin < offsets[e + 1]; begin += kExpertTile) {
      int64_t rows = std::min<int64_t>(kExpertTile, offsets[e + 1] - begin);
      for (int64_t r = 0; r < rows; ++r)
        std::copy_n(x.in + row_of(order[begin + r], x.rows_in) * x.inputs, x.inputs, rows_in + r * x.inputs);
      multiply_checked(Gemm<T>{.m = rows,
                               .n = x.outputs,
                               .k = x.inputs,
                               .a = {rows_in, x.inputs},
                               .b = b,
                               .c = rows_out,
                               .c_stride = x.outputs,
                               .few_rows = x.experts.rows > 0 ? FewRows::as_many : FewRows::faster},
                       call, memory + at.gemm, check_scratch(call, thread, {kExpertTile, x.outputs, x.inputs}));
      for (int64_t r = 0; r < rows; ++r) {
        T* to = x.out + row_of(order[begin + r], x.rows_out) * x.outputs;
        const T* from = rows_out + r * x.outputs;
        if (x.rows_out == Rows::slots)
          std::copy_n(from, x.outputs, to);
        else
          for (int64_t j = 0; j < x.outputs; ++j) to[j] += from[j];
      }
    }
  }
}

enum class Weight : uint8_t { as_stored, transposed };

// in[0] by the weights in[1] of the experts in[2].
template <Rows kIn, Rows kOut, Weight kWeight>
void run_rows(const KernelCall& call) {
  const Tensor &w = call.in[1], &experts = call.in[2];
  for_real_type(call.in[0].dtype, [&]<class T>() {
    int64_t inputs = call.in[0].shape.last(), outputs = call.out[0].shape.last();
    int64_t expert_count = local_experts(w.count(), inputs, outputs);
    Matrix<T> stored{w.as<T>(), w.shape.last()};
    SlotExperts slots = slot_experts(call, expert_count);
    ExpertRows<T> rows{.experts = slots,
                       .places = places_of_slots(call),
                       .expert_count = expert_count,
                       .tokens = slots.rows > 0 ? experts.count() : experts.shape.rows(),
                       .top_k = slots.rows > 0 ? 1 : experts.shape.last(),
                       .in = call.in[0].as<T>(),
                       .rows_in = kIn,
                       .inputs = inputs,
                       .out = call.out[0].as<T>(),
                       .rows_out = kOut,
                       .outputs = outputs,
                       .b = kWeight == Weight::transposed ? stored.transposed() : stored,
                       .b_elements = w.count() / expert_count};
    ExpertRowsScratch scratch({rows.top_k, expert_count, rows.inputs, rows.outputs, int64_t{sizeof(T)}});
    call.team.parallel_for(ceil_div(rows.tokens, kTokensPerTask), [&](int64_t task, int thread) {
      multiply_block(rows, task * kTokensPerTask, std::min(rows.tokens, (task + 1) * kTokensPerTask),
                     call.workspace + thread * scratch.bytes(), call, thread);
    });
  });
}

// dw[e] = Σ dyᵀ·x over the slots of e; an expert without any gets 0.
template <Rows kOutputs, Rows kInputs>
void run_weight_gradient(const KernelCall& call) {
  const Tensor &dy = call.in[0], &x = call.in[1], &experts = call.in[2];
  for_real_type(dy.dtype, [&]<class T>() {
    int64_t outputs = dy.shape.last(), inputs = x.shape.last();
    int64_t expert_count = local_experts(call.out[0].count(), inputs, outputs);
    SlotExperts slots = slot_experts(call, expert_count);
    int64_t top_k = slots.rows > 0 ? 1 : experts.shape.last();
    ExpertGradientScratch at({experts.count(), expert_count, outputs, inputs, int64_t{sizeof(T)}});
    auto* order = reinterpret_cast<int32_t*>(call.workspace);
    auto* offsets = reinterpret_cast<int32_t*>(call.workspace + at.order.offsets);
    sort_for_sums(call, slots, expert_count, experts.count(), order, offsets);
    const RowOfSlot row_of{top_k, places_of_slots(call)};
    call.team.parallel_for(expert_count, [&](int64_t e, int thread) {
      std::byte* memory = call.workspace + at.shared() + thread * at.of_thread();
      T *dy_rows = reinterpret_cast<T*>(memory), *x_rows = reinterpret_cast<T*>(memory + at.inputs);
      T* dw = call.out[0].as<T>() + e * outputs * inputs;
      if (!call.accumulate()) std::fill_n(dw, outputs * inputs, T{0});
      for (int64_t begin = offsets[e]; begin < offsets[e + 1]; begin += kGradientTile) {
        int64_t rows = std::min<int64_t>(kGradientTile, offsets[e + 1] - begin);
        for (int64_t r = 0; r < rows; ++r) {
          std::copy_n(dy.as<T>() + row_of(order[begin + r], kOutputs) * outputs, outputs, dy_rows + r * outputs);
          std::copy_n(x.as<T>() + row_of(order[begin + r], kInputs) * inputs, inputs, x_rows + r * inputs);
        }
        multiply_checked(Gemm<T>{.m = outputs,
                                 .n = inputs,
                                 .k = rows,
                                 .a = Matrix<T>{dy_rows, outputs}.transposed(),
                                 .b = {x_rows, inputs},
                                 .c = dw,
                                 .c_stride = inputs,
                                 .write = slots.rows > 0 ? Write::go_on : Write::add},
                         call, memory + at.gemm, check_scratch(call, thread, {outputs, inputs, kGradientTile}));
      }
    });
  });
}

}  // namespace

const CpuKernel expert_up{.run = run_rows<Rows::tokens, Rows::slots, Weight::transposed>};
const CpuKernel expert_up_input_gradient{.run = run_rows<Rows::slots, Rows::tokens, Weight::as_stored>};
const CpuKernel expert_up_weight_gradient{.run = run_weight_gradient<Rows::slots, Rows::tokens>};
const CpuKernel expert_down{.run = run_rows<Rows::slots, Rows::tokens, Weight::transposed>};
const CpuKernel expert_down_input_gradient{.run = run_rows<Rows::tokens, Rows::slots, Weight::as_stored>};
const CpuKernel expert_down_weight_gradient{.run = run_weight_gradient<Rows::tokens, Rows::slots>};

// Of ops/expert_rows.cpp: both sides have one row per slot.
const CpuKernel expert_rows{.run = run_rows<Rows::slots, Rows::slots, Weight::transposed>};
const CpuKernel expert_rows_input_gradient{.run = run_rows<Rows::slots, Rows::slots, Weight::as_stored>};
const CpuKernel expert_rows_weight_gradient{.run = run_weight_gradient<Rows::slots, Rows::slots>};

}  // namespace sextant::cpu
