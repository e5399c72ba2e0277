#include <algorithm>
#include <cmath>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

template <class T>
struct Clamping {
  explicit Clamping(const Attrs& attrs)
      : limit(static_cast<T>(attrs.real("limit"))), alpha(static_cast<T>(attrs.real("alpha"))) {}
  T limit, alpha;
};

// One pair of gate and up.
template <class T>
struct ClampedPair {
  ClampedPair(const Clamping<T>& clamping, T gate_in, T up_in)
      : limit(clamping.limit),
        alpha(clamping.alpha),
        gate_is_free(gate_in <= limit),
        up_is_free(std::abs(up_in) <= limit),
        gate(std::min(gate_in, limit)),
        up(std::clamp(up_in, -limit, limit) + 1),
        sigmoid(1 / (1 + std::exp(-alpha * gate))) {}

  T limit, alpha;
  bool gate_is_free, up_is_free;  // not cut off
  T gate, up, sigmoid;

  T value() const { return up * gate * sigmoid; }
  T by_gate() const { return gate_is_free ? up * sigmoid * (1 + alpha * gate * (1 - sigmoid)) : 0; }
  T by_up() const { return up_is_free ? gate * sigmoid : 0; }
};

void run_weighted_clamped_swiglu(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *x = call.in[0].as<T>(), *weights = call.in[1].as<T>();
    T* y = call.out[0].as<T>();
    int64_t width = call.out[0].shape.last();
    const Clamping<T> clamping(call.attrs);
    for_blocks(call.team, call.out[0].shape.rows(), rows_per_task(2 * width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * width; i < end * width; ++i)
        y[i] = weights[i / width] * ClampedPair<T>(clamping, x[2 * i], x[2 * i + 1]).value();
    });
  });
}

// dx may stand where x does: a pair is read before it is written.
void run_weighted_clamped_swiglu_backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *dy = call.in[0].as<T>(), *x = call.in[1].as<T>(), *weights = call.in[2].as<T>();
    T *dx = call.out[0].as<T>(), *dweights = call.out[1].as<T>();
    int64_t width = call.in[0].shape.last();
    const Clamping<T> clamping(call.attrs);
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(2 * width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        T sum = 0;
        for (int64_t i = row * width; i < (row + 1) * width; ++i) {
          ClampedPair<T> pair(clamping, x[2 * i], x[2 * i + 1]);
          sum += dy[i] * pair.value();
          dx[2 * i] = weights[row] * dy[i] * pair.by_gate();
          dx[2 * i + 1] = weights[row] * dy[i] * pair.by_up();
        }
        dweights[row] = sum;
      }
    });
  });
}

}  // namespace

const CpuKernel weighted_clamped_swiglu{.run = run_weighted_clamped_swiglu};
const CpuKernel weighted_clamped_swiglu_backward{.run = run_weighted_clamped_swiglu_backward};
const CpuKernel weighted_clamped_swiglu_rows{.run = run_weighted_clamped_swiglu};
const CpuKernel weighted_clamped_swiglu_rows_backward{.run = run_weighted_clamped_swiglu_backward};

}  // namespace sextant::cpu
