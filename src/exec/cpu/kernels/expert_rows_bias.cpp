#include <algorithm>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/expert_order.h"
#include "targets/cpu/expert_sizes.h"
#include "targets/slot_experts.h"

namespace sextant::cpu {

namespace {

constexpr int64_t kRowBiasColumns = 64;  // that one task sums, over the rows of every expert

// `bias` is this rank's, or the gradient of it.
SlotExperts biases_of_rows(const KernelCall& call, const Tensor& experts, const Tensor& bias) {
  return experts_of_rows(experts.as<int32_t>(), experts.shape.last(),
                         {.experts = call.attrs.integer("experts"),
                          .blocks = call.attrs.integer("blocks"),
                          .held = bias.count() / call.in[0].shape.last()});
}

// y = x + factor(row)·bias of the row's expert. y may stand where x does.
template <class T, class Factor>
void add_to_rows(const KernelCall& call, const Tensor& experts, const Factor& factor) {
  const T *x = call.in[0].as<T>(), *bias = call.in[1].as<T>();
  T* y = call.out[0].as<T>();
  int64_t width = call.in[0].shape.last();
  SlotExperts of_rows = biases_of_rows(call, experts, call.in[1]);
  for_blocks(call.team, experts.count(), rows_per_task(width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t e = of_rows.of(row);
      for (int64_t j = 0; j < width; ++j)
        y[row * width + j] = x[row * width + j] + (e < 0 ? T{0} : factor(row) * bias[e * width + j]);
    }
  });
}

// dbias[e] = Σ over the rows of expert e of factor(row)·dy, in the order of the gradients of its other weights.
template <class T, class Factor>
void sum_rows(const KernelCall& call, const Tensor& experts, const Factor& factor) {
  const T* dy = call.in[0].as<T>();
  T* dbias = call.out[0].as<T>();
  int64_t width = call.in[0].shape.last(), held = call.out[0].count() / width;
  ExpertOrderScratch at(experts.count(), held);
  auto* order = reinterpret_cast<int32_t*>(call.workspace);
  auto* offsets = reinterpret_cast<int32_t*>(call.workspace + at.offsets);
  sort_for_sums(call, biases_of_rows(call, experts, call.out[0]), held, experts.count(), order, offsets);
  for_blocks(call.team, width, kRowBiasColumns, [&](int64_t begin, int64_t end) {
    for (int64_t e = 0; e < held; ++e) {
      T* sums = dbias + e * width;
      if (!call.accumulate()) std::fill(sums + begin, sums + end, T{0});
      for (int32_t i = offsets[e]; i < offsets[e + 1]; ++i)
        for (int64_t j = begin; j < end; ++j) sums[j] += factor(order[i]) * dy[order[i] * width + j];
    }
  });
}

void run_expert_rows_bias(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() { add_to_rows<T>(call, call.in[2], [](int64_t) { return T{1}; }); });
}

void run_expert_rows_bias_gradient(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() { sum_rows<T>(call, call.in[1], [](int64_t) { return T{1}; }); });
}

void run_expert_rows_weighted_bias(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* weights = call.in[2].as<T>();
    add_to_rows<T>(call, call.in[3], [=](int64_t row) { return weights[row]; });
  });
}

void run_expert_rows_weighted_bias_gradient(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *dy = call.in[0].as<T>(), *bias = call.in[1].as<T>(), *weights = call.in[2].as<T>();
    sum_rows<T>(call, call.in[3], [=](int64_t row) { return weights[row]; });
    T* dweights = call.out[1].as<T>();
    int64_t width = call.in[0].shape.last();
    SlotExperts of_rows = biases_of_rows(call, call.in[3], call.in[1]);
    for_blocks(call.team, call.in[3].count(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t e = of_rows.of(row);
        T sum = 0;
        for (int64_t j = 0; e >= 0 && j < width; ++j) sum += dy[row * width + j] * bias[e * width + j];
        dweights[row] = sum;
      }
    });
  });
}

}  // namespace

const CpuKernel expert_rows_bias{.run = run_expert_rows_bias};
const CpuKernel expert_rows_bias_gradient{.run = run_expert_rows_bias_gradient};
const CpuKernel expert_rows_weighted_bias{.run = run_expert_rows_weighted_bias};
const CpuKernel expert_rows_weighted_bias_gradient{.run = run_expert_rows_weighted_bias_gradient};

}  // namespace sextant::cpu
