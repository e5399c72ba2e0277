#include "laws/laws.h"

#include "laws/kaplan.h"

namespace sextant {

Optimum Law::optimum(double compute) const {
  Optimum best{split.params_at(compute), split.tokens_at(compute), std::nullopt};
  if (loss_at_optimum) best.loss = loss_at_optimum(compute);
  return best;
}

Law as_law(const ParametricLaw& law) {
  return {.name = law.name,
          .source = law.source,
          .split = law.split(),
          .loss_at_optimum = [law](double compute) { return *law.optimum(compute).loss; },
          .loss = [law](double params, double tokens) { return law.loss(params, tokens); }};
}

double cerebras_gpt_loss(double compute) {
  return std::pow(compute / 5.984e22, -0.0737) + 0.5066;
}

std::vector<Law> published_laws() {
  const std::string hoffmann = "arXiv:2203.15556";
  return {{.name = "Hoffmann 2022, approach 1 (envelope)",
           .source = hoffmann + ", table 3",
           .split = hoffmann_envelope(),
           .loss_at_optimum = {},
           .loss = {}},
          {.name = "Hoffmann 2022, approach 2 (IsoFLOP)",
           .source = hoffmann + ", table A3",
           .split = hoffmann_isoflop(),
           .loss_at_optimum = {},
           .loss = {}},
          as_law(hoffmann_printed()),
          as_law(hoffmann_tex()),
          as_law(besiroglu()),
          {.name = "Cerebras-GPT 2023 (20 tokens a parameter)",
           .source = "arXiv:2304.03208",
           .split = {.coefficient = 1 / std::sqrt(120.0), .exponent = 0.5},
           .loss_at_optimum = cerebras_gpt_loss,
           .loss = {}},
          {.name = "Kaplan 2020 (N without embeddings)",
           .source = "arXiv:2001.08361",
           .split = kaplan_split(),
           .loss_at_optimum = kaplan_loss_at_optimum,
           .loss = {}}};
}

}  // namespace sextant
