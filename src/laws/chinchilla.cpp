#include "laws/chinchilla.h"

#include <array>
#include <span>

#include "base/error.h"

namespace sextant {

namespace {

struct TableRow {
  double params, flops;
};

constexpr std::array<TableRow, 9> kTable3{{{400e6, 1.92e19},
                                           {1e9, 1.21e20},
                                           {10e9, 1.23e22},
                                           {67e9, 5.76e23},
                                           {175e9, 3.85e24},
                                           {280e9, 9.90e24},
                                           {520e9, 3.43e25},
                                           {1e12, 1.27e26},
                                           {10e12, 1.30e28}}};
constexpr std::array<TableRow, 9> kTableA3{{{400e6, 1.84e19},
                                            {1e9, 1.20e20},
                                            {10e9, 1.32e22},
                                            {67e9, 6.88e23},
                                            {175e9, 4.54e24},
                                            {280e9, 1.18e25},
                                            {520e9, 4.19e25},
                                            {1e12, 1.59e26},
                                            {10e12, 1.75e28}}};

// The straight line through log N over log C, by least squares.
ComputeSplit line_through(std::span<const TableRow> rows) {
  double x = 0, y = 0, xx = 0, xy = 0, n = static_cast<double>(rows.size());
  for (const TableRow& row : rows) {
    double c = std::log(row.flops), p = std::log(row.params);
    x += c, y += p, xx += c * c, xy += c * p;
  }
  double slope = (n * xy - x * y) / (n * xx - x * x);
  return {std::exp((y - slope * x) / n), slope};
}

}  // namespace

double ParametricLaw::loss(double params, double tokens) const {
  const LawConstants& c = constants;
  return c.E + c.A * std::pow(params, -c.alpha) + c.B * std::pow(tokens, -c.beta);
}

ComputeSplit ParametricLaw::split() const {
  const LawConstants& c = constants;
  // Where d(loss)/d(log N) = d(loss)/d(log D) along 6ND = C.
  double g = std::pow(c.alpha * c.A / (c.beta * c.B), 1 / (c.alpha + c.beta));
  double exponent = c.beta / (c.alpha + c.beta);
  return {g * std::pow(6, -exponent), exponent};
}

Optimum ParametricLaw::optimum(double compute) const {
  ComputeSplit best = split();
  double params = best.params_at(compute), tokens = best.tokens_at(compute);
  return {params, tokens, loss(params, tokens)};
}

Optimum ParametricLaw::optimum_for_loss(double target) const {
  const LawConstants& c = constants;
  double reducible = target - c.E;
  if (!(reducible > 0))
    throw UserError(Complaint{.place = name,
                              .got = fmt::format("no model reaches a loss of {:.4g}", target),
                              .expected = fmt::format("more than the law's irreducible loss, {:.4g}", c.E),
                              .hint = ""});
  // At the optimum the two terms stand as beta to alpha.
  double params = std::pow((c.alpha + c.beta) * c.A / (c.beta * reducible), 1 / c.alpha);
  double tokens = std::pow((c.alpha + c.beta) * c.B / (c.alpha * reducible), 1 / c.beta);
  return {params, tokens, target};
}

ParametricLaw hoffmann_printed() {
  return {.name = "Hoffmann 2022, approach 3 as printed",
          .source = "arXiv:2203.15556, appendix D.3",
          .constants = {.E = 1.69, .A = 406.4, .B = 410.7, .alpha = 0.34, .beta = 0.28},
          .standard_errors = std::nullopt};
}

ParametricLaw hoffmann_tex() {
  return {.name = "Hoffmann 2022, approach 3 in its TeX",
          .source = "arXiv:2203.15556, TeX source",
          .constants = {.E = 1.6934, .A = 406.4, .B = 410.7, .alpha = 0.3392, .beta = 0.2849},
          .standard_errors = std::nullopt};
}

ParametricLaw besiroglu() {
  return {.name = "Besiroglu 2024, approach 3 fitted again",
          .source = "arXiv:2404.10102",
          .constants = {.E = 1.8172, .A = 482.01, .B = 2085.43, .alpha = 0.3478, .beta = 0.3658},
          .standard_errors = LawConstants{.E = 0.03, .A = 124.58, .B = 1293.23, .alpha = 0.02, .beta = 0.02}};
}

ComputeSplit hoffmann_envelope() {
  return line_through(kTable3);
}
ComputeSplit hoffmann_isoflop() {
  return line_through(kTableA3);
}

}  // namespace sextant
