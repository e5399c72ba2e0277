// Training and serving together: 6·N·D FLOPs to train, 2·N for every token read or written afterwards (Sardana et al.,
// "Beyond Chinchilla-Optimal", arXiv:2401.00448). Minima are found by golden section over log N; both curves are
// convex.
#pragma once

#include "laws/chinchilla.h"

namespace sextant {

struct Lifetime {
  double params = 0;
  double tokens = 0;  // of training
  double loss = 0;
  double training_flops = 0;
  double inference_flops = 0;

  double total() const { return training_flops + inference_flops; }
};

// The model that reaches `loss` for the fewest FLOPs in all. UserError when no model reaches it.
Lifetime cheapest_lifetime(const ParametricLaw& law, double loss, double inference_tokens);

// The model of the lowest loss that can be trained and served for so many FLOPs in all.
Lifetime best_lifetime(const ParametricLaw& law, double total_flops, double inference_tokens);

struct LifetimeComparison {
  double inference_tokens = 0;
  Lifetime compute_optimal;  // trained for the least compute, and then served
  Lifetime cheapest;         // of the same loss
  Lifetime best;             // for the total of the first

  double saving() const { return 1 - cheapest.total() / compute_optimal.total(); }
};

LifetimeComparison compare_lifetimes(const ParametricLaw& law, double training_flops, double inference_tokens);

}  // namespace sextant
