#include "laws/kaplan.h"

namespace sextant {

double kaplan_loss_of_compute(double min_compute) {
  return std::pow(3.1e8 * kPetaflopDay / min_compute, 0.050);
}

ComputeSplit kaplan_split() {
  constexpr double kExponent = 0.73;  // N = 1.3e9 · (C_min in PF-days)^0.73
  return {1.3e9 * std::pow(2 * kPetaflopDay, -kExponent), kExponent};
}

double kaplan_loss_at_optimum(double compute) {
  return kaplan_loss_of_compute(compute / 2);
}

}  // namespace sextant
