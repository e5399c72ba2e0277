#include "laws/kaplan.h"

namespace sextant {

double kaplan_loss_of_params(double params) {
  return std::pow(8.8e13 / params, 0.076);
}
double kaplan_loss_of_tokens(double tokens) {
  return std::pow(5.4e13 / tokens, 0.095);
}
double kaplan_loss_of_compute(double min_compute) {
  return std::pow(3.1e8 * kPetaflopDay / min_compute, 0.050);
}

double kaplan_loss_of_params_tokens(double params, double tokens) {
  // Fitted jointly, hence other constants than alone.
  constexpr double kAlphaN = 0.076, kAlphaD = 0.103;
  return std::pow(std::pow(6.4e13 / params, kAlphaN / kAlphaD) + 1.8e13 / tokens, kAlphaD);
}

double kaplan_critical_batch(double loss) {
  return 2e8 / std::pow(loss, 1 / 0.21);
}

ComputeSplit kaplan_split() {
  constexpr double kExponent = 0.73;  // N = 1.3e9 · (C_min in PF-days)^0.73
  return {1.3e9 * std::pow(2 * kPetaflopDay, -kExponent), kExponent};
}

double kaplan_loss_at_optimum(double compute) {
  return kaplan_loss_of_compute(compute / 2);
}

}  // namespace sextant
