// How training compute is divided between a model and its data. Every published law comes to the same form: with C =
// 6·N·D FLOPs the best model has N* = coefficient · C^exponent parameters, and sees D* = C / 6N* tokens.
#pragma once

#include <cmath>
#include <optional>

namespace sextant {

struct Optimum {
  double params = 0;
  double tokens = 0;
  std::optional<double> loss;  // nats per token, on the corpus the law was fitted on; not every law has one

  double compute() const { return 6 * params * tokens; }
};

struct ComputeSplit {
  double coefficient = 0;
  double exponent = 0.5;  // between 0 and 1

  double params_at(double compute) const { return coefficient * std::pow(compute, exponent); }
  double tokens_at(double compute) const { return compute / (6 * params_at(compute)); }

  // The compute at which this many parameters, or tokens, are best.
  double compute_for_params(double params) const { return std::pow(params / coefficient, 1 / exponent); }
  double compute_for_tokens(double tokens) const { return std::pow(6 * coefficient * tokens, 1 / (1 - exponent)); }
};

}  // namespace sextant
