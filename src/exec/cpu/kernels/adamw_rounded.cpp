#include <algorithm>
#include <array>

#include "exec/cpu/kernels/adamw_step.h"
#include "exec/cpu/kernels/blocks.h"

namespace sextant::cpu {

namespace {

constexpr int64_t kTogether = 256;  // elements whose moments are held in full at once

template <class T>
void load_moments(const Tensor& moments, int64_t at, int64_t n, T* into) {
  if (moments.dtype == DType::bf16)
    std::transform(moments.as<uint16_t>() + at, moments.as<uint16_t>() + at + n, into, bf16_value);
  else
    std::copy_n(moments.as<T>() + at, n, into);
}

template <class T>
void store_moment(const Tensor& moments, int64_t at, T x, uint32_t bits) {
  if (moments.dtype == DType::bf16)
    moments.as<uint16_t>()[at] = bf16_bits_at_random(static_cast<float>(x), bits);
  else
    moments.as<T>()[at] = x;
}

template <class T>
class RoundedStep {
 public:
  explicit RoundedStep(const KernelCall& call)
      : call_(call),
        step_(adamw_step_of<T>(call)),
        words_(call.attrs, *call.in[6].as<int32_t>()),
        rounds_weight_(call.attrs.integer_or("round_weight", 0) != 0) {}

  void run() const {
    if (step_.scale == 0) return;
    WeightRows weight(call_.out[0].shape);
    for_blocks(call_.team, weight.rows, rows_per_task(weight.columns), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t column = 0; column < weight.columns; column += kTogether)
          part(row, column, row * weight.columns + column, std::min(kTogether, weight.columns - column));
    });
  }

 private:
  // Neighbours in a row from `column` on, which stand at `at` of the tensor.
  void part(int64_t row, int64_t column, int64_t at, int64_t n) const {
    std::array<T, kTogether> m, v;
    load_moments(call_.out[1], at, n, m.data());
    load_moments(call_.out[2], at, n, v.data());
    AdamwRow<T> own = adamw_part(call_, step_, at, m.data(), v.data());
    adamw_row(own, n);
    for (int64_t i = 0; i < n; ++i) {
      auto element = static_cast<size_t>(i);
      RoundingBits bits = words_.at(words_.place_of(call_.in[0], row, column + i));
      if (rounds_weight_) own.p[i] = rounded_at_random(own.p[i], bits.weight);
      store_moment(call_.out[1], at + i, m[element], bits.first_moment);
      store_moment(call_.out[2], at + i, v[element], bits.second_moment);
    }
  }

  const KernelCall& call_;
  AdamwRow<T> step_;
  RoundingWords words_;
  bool rounds_weight_;
};

void run_adamw_rounded(const KernelCall& call) {
  for_real_type(call.out[0].dtype, [&]<class T>() { RoundedStep<T>(call).run(); });
}

}  // namespace

const CpuKernel adamw_rounded{.run = run_adamw_rounded};

}  // namespace sextant::cpu
