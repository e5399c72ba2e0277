// SumCheck: whether an elementwise sum of several arrays is right, by one number of each: its sum with random signs.
//
// With x drawn independently of the data, Σ_j x_j·e_j of the rounding errors e_j exceeds λ·|e|₂ with probability
// 2·exp(−λ²/2) at most (Hoeffding 1963). An element that is a sum of n terms, rounded n − 1 times, is off by at most
// γ_{n−1}·Σ_i |t_ij|, so |e|₂ ≤ γ_{n−1}·Σ_i |t_i|₂. With λ = 10 a right sum is called wrong with probability 4·10⁻²²,
// whatever the data. Integers are added without rounding and compared exactly, modulo 2⁶⁴.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/dtype.h"

namespace sextant {

class SumCheck {
 public:
  SumCheck(DType dtype, uint64_t signs) : dtype_(dtype), signs_(signs) {}

  static bool supports(DType dtype);  // sums of others go unchecked

  void add(std::span<const std::byte> term);

  struct Fault {
    double got, expected, allowed;
  };
  // Nothing where the result is right, or nothing can be said: numbers that are not finite, or that a right sum could
  // overflow.
  std::optional<Fault> fault_in(std::span<const std::byte> result) const;

 private:
  struct Projection {
    double sum = 0, norm = 0;
    uint64_t whole = 0;  // of integers
  };
  Projection projection_of(std::span<const std::byte> numbers) const;

  DType dtype_;
  uint64_t signs_;
  int terms_ = 0;
  size_t count_ = 0;
  Projection all_;  // norms are added up
};

}  // namespace sextant
