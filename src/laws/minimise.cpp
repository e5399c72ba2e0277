#include "laws/minimise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace sextant {

namespace {

// log L = log(exp(a - alpha·n) + exp(b - beta·d) + exp(e)), with n and d the logarithms of N and D less their means:
// then a hardly changes when alpha does.
enum Unknown { kA, kB, kE, kAlpha, kBeta, kUnknowns };
using Vector = std::array<double, kUnknowns>;

// Wide enough for any law, narrow enough that nothing overflows when the data leave a constant open.
constexpr Vector kLowest{-30, -30, -12, 0.01, 0.01}, kHighest{12, 12, 12, 3, 3};

struct Point {
  double n, d, log_loss;
};

struct Problem {
  std::vector<Point> points;
  double mean_n = 0, mean_d = 0;
  double delta;
};

Problem make_problem(std::span<const LossRun> runs, double delta) {
  Problem problem{.points = {}, .delta = delta};
  double count = static_cast<double>(runs.size());
  for (const LossRun& run : runs) {
    problem.points.push_back({std::log(run.params), std::log(run.tokens), std::log(run.loss)});
    problem.mean_n += problem.points.back().n / count;
    problem.mean_d += problem.points.back().d / count;
  }
  for (Point& point : problem.points) point.n -= problem.mean_n, point.d -= problem.mean_d;
  return problem;
}

Vector unknowns_of(const LawConstants& c, const Problem& problem) {
  return {std::log(c.A) - c.alpha * problem.mean_n, std::log(c.B) - c.beta * problem.mean_d, std::log(c.E), c.alpha,
          c.beta};
}

LawConstants constants_of(const Vector& x, const Problem& problem) {
  return {std::exp(x[kE]), std::exp(x[kA] + x[kAlpha] * problem.mean_n), std::exp(x[kB] + x[kBeta] * problem.mean_d),
          x[kAlpha], x[kBeta]};
}

// The residual at a point and, by the unknowns, its derivatives.
double residual(const Point& point, const Vector& x, Vector& slope) {
  double model = std::exp(x[kA] - x[kAlpha] * point.n), data = std::exp(x[kB] - x[kBeta] * point.d),
         floor = std::exp(x[kE]);
  double loss = model + data + floor;
  slope = {model / loss, data / loss, floor / loss, -point.n * model / loss, -point.d * data / loss};
  return std::log(loss) - point.log_loss;
}

double huber(double r, double delta) {
  return std::abs(r) <= delta ? r * r / 2 : delta * (std::abs(r) - delta / 2);
}

double objective(const Problem& problem, const Vector& x) {
  double sum = 0;
  Vector slope;
  for (const Point& point : problem.points) sum += huber(residual(point, x, slope), problem.delta);
  return sum;
}

// Solves the symmetric system in place by Gaussian elimination with pivots on the diagonal, which damping keeps
// positive.
template <size_t N>
bool solve(std::array<std::array<double, N>, N>& m, std::array<double, N>& v) {
  for (size_t k = 0; k < N; ++k) {
    if (!(m[k][k] > 1e-300)) return false;
    for (size_t i = k + 1; i < N; ++i) {
      double factor = m[i][k] / m[k][k];
      for (size_t j = k; j < N; ++j) m[i][j] -= factor * m[k][j];
      v[i] -= factor * v[k];
    }
  }
  for (size_t k = N; k-- > 0;) {
    for (size_t j = k + 1; j < N; ++j) v[k] -= m[k][j] * v[j];
    v[k] /= m[k][k];
  }
  return true;
}

using Matrix = std::array<std::array<double, kUnknowns>, kUnknowns>;

struct Normal {
  Matrix matrix{};
  Vector gradient{};
};

// Residuals beyond delta weigh less: iterated like this, weighted squares have the Huber loss's minimum.
Normal normal_equations(const Problem& problem, const Vector& x) {
  Normal normal;
  Vector slope;
  for (const Point& point : problem.points) {
    double r = residual(point, x, slope), weight = std::min(1.0, problem.delta / std::max(std::abs(r), 1e-300));
    for (size_t i = 0; i < kUnknowns; ++i) {
      normal.gradient[i] -= weight * r * slope[i];
      for (size_t j = 0; j < kUnknowns; ++j) normal.matrix[i][j] += weight * slope[i] * slope[j];
    }
  }
  return normal;
}

struct Found {
  Vector x;
  double value;
};

Found levenberg_marquardt(const Problem& problem, Vector x) {
  for (size_t i = 0; i < kUnknowns; ++i) x[i] = std::clamp(x[i], kLowest[i], kHighest[i]);
  double value = objective(problem, x), damping = 1e-3;
  int quiet = 0;  // steps in a row that hardly changed anything
  for (int step = 0; step < 500 && quiet < 4 && damping < 1e12; ++step) {
    Normal normal = normal_equations(problem, x);
    for (size_t i = 0; i < kUnknowns; ++i) normal.matrix[i][i] += damping * normal.matrix[i][i] + 1e-14;
    Vector next = x;
    bool solved = solve(normal.matrix, normal.gradient);
    for (size_t i = 0; i < kUnknowns; ++i) next[i] = std::clamp(x[i] + normal.gradient[i], kLowest[i], kHighest[i]);
    double next_value = solved ? objective(problem, next) : value;
    if (solved && next_value < value) {
      quiet = value - next_value < 1e-9 * value ? quiet + 1 : 0;
      x = next, value = next_value, damping = std::max(damping / 5, 1e-12);
    } else {
      damping *= 4;
    }
  }
  return {x, value};
}

// For given alpha and beta, the E, A, B of least squares of the relative error, as (a, b, e): terms that would come out
// negative are made next to nothing.
Found project(const Problem& problem, double alpha, double beta) {
  std::array<std::array<double, 3>, 3> matrix{};
  std::array<double, 3> right{};
  for (const Point& point : problem.points) {
    double inverse = std::exp(-point.log_loss);
    std::array<double, 3> row{std::exp(-alpha * point.n) * inverse, std::exp(-beta * point.d) * inverse, inverse};
    for (size_t i = 0; i < 3; ++i) {
      right[i] += row[i];
      for (size_t j = 0; j < 3; ++j) matrix[i][j] += row[i] * row[j];
    }
  }
  for (size_t i = 0; i < 3; ++i) matrix[i][i] *= 1 + 1e-12;
  if (!solve(matrix, right)) right = {1, 1, 1};
  auto log_of = [](double value) { return std::log(std::max(1e-3, value)); };  // also of what is no number
  Vector x{log_of(right[0]), log_of(right[1]), log_of(right[2]), alpha, beta};
  return {x, objective(problem, x)};
}

std::vector<Found> grid_of_starts(const Problem& problem) {
  std::vector<Found> starts;
  constexpr std::array kExponents{0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5};
  for (double alpha : kExponents)
    for (double beta : kExponents) starts.push_back(project(problem, alpha, beta));
  std::ranges::sort(starts, {}, &Found::value);
  return starts;
}

}  // namespace

LawConstants minimise(std::span<const LossRun> runs, double huber_delta, const std::optional<LawConstants>& guess) {
  Problem problem = make_problem(runs, huber_delta);
  std::vector<Found> starts = grid_of_starts(problem);
  size_t tries = std::min<size_t>(starts.size(), guess ? 1 : 12);
  Found best = levenberg_marquardt(problem, guess ? unknowns_of(*guess, problem) : starts.front().x);
  for (size_t i = 0; i < tries; ++i) {
    Found found = levenberg_marquardt(problem, starts[i].x);
    if (found.value < best.value) best = found;
  }
  return constants_of(best.x, problem);
}

}  // namespace sextant
