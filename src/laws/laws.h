// Every published law the report sets side by side, in one form.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "laws/chinchilla.h"

namespace sextant {

struct Law {
  std::string name;
  std::string source;
  ComputeSplit split;
  std::function<double(double compute)> loss_at_optimum;     // empty: the law forecasts none
  std::function<double(double params, double tokens)> loss;  // empty: only along its optimum, or not at all

  Optimum optimum(double compute) const;
};

Law as_law(const ParametricLaw& law);

// Cerebras-GPT (Dey et al. 2023, arXiv:2304.03208), trained on the Pile at 20 tokens a parameter.
double cerebras_gpt_loss(double compute);

std::vector<Law> published_laws();

}  // namespace sextant
