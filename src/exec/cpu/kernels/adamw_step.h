// Shared by the AdamW kernels for every format of the moments: the scalars of the step, and how a rounded weight is
// stored.
#pragma once

#include <cmath>

#include "base/bf16.h"
#include "exec/adamw_power.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/vector_math.h"
#include "exec/rounding_bits.h"

namespace sextant::cpu {

// Without the addresses of what it works on.
template <class T>
AdamwRow<T> adamw_step_of(const KernelCall& call) {
  double beta1 = call.attrs.real("beta1"), beta2 = call.attrs.real("beta2");
  double lr = static_cast<double>(*call.in[4].as<T>());
  int64_t step = *call.in[6].as<int32_t>();
  return {.p = nullptr,
          .g = nullptr,
          .m = nullptr,
          .v = nullptr,
          .scale = *call.in[5].as<T>(),
          .beta1 = static_cast<T>(beta1),
          .beta2 = static_cast<T>(beta2),
          .eps = static_cast<T>(call.attrs.real("eps")),
          .keep = static_cast<T>(std::fma(-lr, call.attrs.real("weight_decay"), 1.0)),
          .rate = static_cast<T>(lr / (1 - adamw_power(beta1, step))),
          .root = static_cast<T>(1 / std::sqrt(1 - adamw_power(beta2, step)))};
}

// The step on elements from `at` on, with their moments in full.
template <class T>
AdamwRow<T> adamw_part(const KernelCall& call, AdamwRow<T> step, int64_t at, T* m, T* v) {
  step.p = call.out[0].as<T>() + at;
  step.g = call.in[1].as<T>() + at;
  step.m = m;
  step.v = v;
  return step;
}

// A weight as rows of neighbours: a vector is one row.
struct WeightRows {
  int64_t rows, columns;

  explicit WeightRows(const LocalShape& shape)
      : rows(shape.rank() >= 2 ? shape.rows() : 1), columns(shape.rank() >= 2 ? shape.last() : shape.count()) {}
};

// In f64 too through f32, so that both precisions round alike.
template <class T>
T rounded_at_random(T x, uint32_t bits) {
  return static_cast<T>(bf16_value(bf16_bits_at_random(static_cast<float>(x), bits)));
}

}  // namespace sextant::cpu
