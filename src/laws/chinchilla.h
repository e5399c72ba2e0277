// The laws of Hoffmann et al. 2022 ("Chinchilla", arXiv:2203.15556) and of those who fitted its form again.
//   L(N, D) = E + A / N^alpha + B / D^beta    nats per token, N parameters (with embeddings), D tokens
// All constants are positive.
#pragma once

#include <optional>
#include <string>

#include "laws/split.h"

namespace sextant {

struct LawConstants {
  double E = 0, A = 0, B = 0, alpha = 0, beta = 0;
};

struct ParametricLaw {
  std::string name;
  std::string source;
  LawConstants constants;
  std::optional<LawConstants> standard_errors;  // where they are published

  double loss(double params, double tokens) const;
  ComputeSplit split() const;
  Optimum optimum(double compute) const;
  Optimum optimum_for_loss(double loss) const;  // the least compute that reaches it; UserError when nothing does
};

// Approach 3, three times: the constants printed in the paper, those behind its TeX source with more digits, and the
// refit of Besiroglu et al. 2024 (arXiv:2404.10102), who found the first two not to fit the paper's own data.
ParametricLaw hoffmann_printed();
ParametricLaw hoffmann_tex();
ParametricLaw besiroglu();

// Approaches 1 (envelope of training curves) and 2 (IsoFLOP parabolas) give no loss; the power laws go through the
// paper's tables 3 and A3.
ComputeSplit hoffmann_envelope();
ComputeSplit hoffmann_isoflop();

}  // namespace sextant
