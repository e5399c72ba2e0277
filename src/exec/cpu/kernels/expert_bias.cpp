#include <algorithm>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

constexpr int64_t kBiasColumns = 64;  // that one task sums, over all slots in their order

void run_expert_up_bias(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *x = call.in[0].as<T>(), *bias = call.in[1].as<T>();
    const int32_t* experts = call.in[2].as<int32_t>();
    T* y = call.out[0].as<T>();
    int64_t width = call.in[0].shape.last();
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot)
        for (int64_t j = 0; j < width; ++j) y[slot * width + j] = x[slot * width + j] + bias[experts[slot] * width + j];
    });
  });
}

// dbias[e] = Σ over the slots of expert e of factor(slot)·dy[row(slot)].
template <class T, class Row, class Factor>
void sum_by_expert(const KernelCall& call, const Tensor& experts, const Row& row, const Factor& factor) {
  const T* dy = call.in[0].as<T>();
  T* dbias = call.out[0].as<T>();
  int64_t width = call.in[0].shape.last();
  for_blocks(call.team, width, kBiasColumns, [&](int64_t begin, int64_t end) {
    for (int64_t e = 0; e < call.attrs.integer("experts"); ++e)
      std::fill(dbias + e * width + begin, dbias + e * width + end, T{0});
    for (int64_t slot = 0; slot < experts.count(); ++slot) {
      T* sum = dbias + experts.as<int32_t>()[slot] * width;
      for (int64_t j = begin; j < end; ++j) sum[j] += factor(slot) * dy[row(slot) * width + j];
    }
  });
}

void run_expert_up_bias_gradient(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    sum_by_expert<T>(
        call, call.in[1], [](int64_t slot) { return slot; }, [](int64_t) { return T{1}; });
  });
}

void run_expert_down_bias(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *x = call.in[0].as<T>(), *bias = call.in[1].as<T>(), *weights = call.in[2].as<T>();
    const int32_t* experts = call.in[3].as<int32_t>();
    T* y = call.out[0].as<T>();
    int64_t width = call.in[0].shape.last(), top_k = call.in[3].shape.last();
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        if (y != x) std::copy_n(x + t * width, width, y + t * width);
        for (int64_t slot = t * top_k; slot < (t + 1) * top_k; ++slot)
          for (int64_t j = 0; j < width; ++j) y[t * width + j] += weights[slot] * bias[experts[slot] * width + j];
      }
    });
  });
}

void run_expert_down_bias_gradient(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *dy = call.in[0].as<T>(), *bias = call.in[1].as<T>(), *weights = call.in[2].as<T>();
    const int32_t* experts = call.in[3].as<int32_t>();
    int64_t width = call.in[0].shape.last(), top_k = call.in[3].shape.last();
    sum_by_expert<T>(
        call, call.in[3], [&](int64_t slot) { return slot / top_k; }, [&](int64_t slot) { return weights[slot]; });
    T* dweights = call.out[1].as<T>();
    for_blocks(call.team, call.in[3].count(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        T sum = 0;
        for (int64_t j = 0; j < width; ++j) sum += dy[slot / top_k * width + j] * bias[experts[slot] * width + j];
        dweights[slot] = sum;
      }
    });
  });
}

}  // namespace

const CpuKernel expert_up_bias{.run = run_expert_up_bias};
const CpuKernel expert_up_bias_gradient{.run = run_expert_up_bias_gradient};
const CpuKernel expert_down_bias{.run = run_expert_down_bias};
const CpuKernel expert_down_bias_gradient{.run = run_expert_down_bias_gradient};

}  // namespace sextant::cpu
