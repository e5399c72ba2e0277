#include "laws/lifetime.h"

#include <algorithm>
#include <limits>

namespace sextant {

namespace {

// Where a convex function is least, to a ten-thousandth of a percent of e^x.
template <class Function>
double golden_section(double low, double high, const Function& f) {
  const double kRatio = (std::sqrt(5.0) - 1) / 2;
  double a = high - kRatio * (high - low), b = low + kRatio * (high - low);
  double fa = f(a), fb = f(b);
  while (high - low > 1e-6) {
    if (fa < fb) {
      high = b, b = a, fb = fa;
      a = high - kRatio * (high - low), fa = f(a);
    } else {
      low = a, a = b, fa = fb;
      b = low + kRatio * (high - low), fb = f(b);
    }
  }
  return (low + high) / 2;
}

Lifetime lifetime_of(const ParametricLaw& law, double params, double tokens, double inference_tokens) {
  return {params, tokens, law.loss(params, tokens), 6 * params * tokens, 2 * params * inference_tokens};
}

}  // namespace

Lifetime cheapest_lifetime(const ParametricLaw& law, double loss, double inference_tokens) {
  const LawConstants& c = law.constants;
  Optimum trained = law.optimum_for_loss(loss);
  auto tokens_of = [&](double params) {
    double left = loss - c.E - c.A * std::pow(params, -c.alpha);
    return left > 0 ? std::pow(left / c.B, -1 / c.beta) : std::numeric_limits<double>::infinity();
  };
  // Serving only ever asks for smaller models; below the lower end the loss is out of reach.
  double low = std::log(c.A / (loss - c.E)) / c.alpha, high = std::log(trained.params);
  double best = golden_section(low, high, [&](double log_params) {
    double params = std::exp(log_params);
    return params * (6 * tokens_of(params) + 2 * inference_tokens);
  });
  double params = inference_tokens > 0 ? std::exp(best) : trained.params;
  return lifetime_of(law, params, tokens_of(params), inference_tokens);
}

Lifetime best_lifetime(const ParametricLaw& law, double total_flops, double inference_tokens) {
  auto tokens_of = [&](double params) { return (total_flops / params - 2 * inference_tokens) / 6; };
  double high = std::log(total_flops) - std::log(std::max(2 * inference_tokens, 6.0));
  double best = golden_section(std::min(0.0, high - 1), high, [&](double log_params) {
    double params = std::exp(log_params), tokens = tokens_of(params);
    return tokens > 0 ? law.loss(params, tokens) : std::numeric_limits<double>::infinity();
  });
  double params = std::exp(best);
  return lifetime_of(law, params, tokens_of(params), inference_tokens);
}

LifetimeComparison compare_lifetimes(const ParametricLaw& law, double training_flops, double inference_tokens) {
  Optimum trained = law.optimum(training_flops);
  LifetimeComparison comparison{.inference_tokens = inference_tokens};
  comparison.compute_optimal = lifetime_of(law, trained.params, trained.tokens, inference_tokens);
  comparison.cheapest = cheapest_lifetime(law, *trained.loss, inference_tokens);
  comparison.best = best_lifetime(law, comparison.compute_optimal.total(), inference_tokens);
  return comparison;
}

}  // namespace sextant
