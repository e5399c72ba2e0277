#include <algorithm>
#include <cmath>
#include <numbers>

#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

double dot(const double* a, const double* b, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += a[i] * b[i];
  return total;
}

double dot_shifted(const double* a, const double* b, const double* c, double shift, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += a[i] * b[i] * (c[i] - shift);
  return total;
}

double sum(const double* x, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}

double largest(const double* x, int64_t n) {
  return *std::max_element(x, x + n);
}

double square_sum(const double* x, int64_t n) {
  return dot(x, x, n);
}

double exp_and_sum(double* x, int64_t n, double scale, double shift) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i] = std::exp(scale * x[i] - shift);
  return total;
}

void turn_heads(const double* x, const double* cosines, double* y, int64_t half, int64_t heads) {
  const double* sines = cosines + half;
  for (int64_t head = 0; head < heads; ++head, x += 2 * half, y += 2 * half)
    for (int64_t j = 0; j < half; ++j) {
      double a = x[j], b = x[j + half];
      y[j] = a * cosines[j] - b * sines[j];
      y[j + half] = b * cosines[j] + a * sines[j];
    }
}

void gelu_row(const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    double t = std::tanh(kGeluRoot * (x[i] + kGeluCubic * x[i] * x[i] * x[i]));
    y[i] = x[i] / 2 * (1 + t);
  }
}

void gelu_backward_row(const double* dy, const double* x, double* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    double t = std::tanh(kGeluRoot * (x[i] + kGeluCubic * x[i] * x[i] * x[i]));
    double slope = kGeluRoot * (1 + 3 * kGeluCubic * x[i] * x[i]);
    dx[i] = dy[i] * ((1 + t) / 2 + x[i] / 2 * (1 - t * t) * slope);
  }
}

void gelu_erf_row(const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / 2 * std::erfc(-x[i] / std::numbers::sqrt2);
}

void gelu_erf_backward_row(const double* dy, const double* x, double* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    dx[i] = dy[i] * (std::erfc(-x[i] / std::numbers::sqrt2) / 2 + x[i] * kNormalDensity * std::exp(-x[i] * x[i] / 2));
}

void swiglu_row(const double* gate, const double* up, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
}

void swiglu_backward_row(const SwigluRow<double>& row, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    double gate = row.gate[i], up = row.up[i], sigmoid = 1 / (1 + std::exp(-gate));
    row.dgate[i] = row.dy[i] * up * sigmoid * (1 + gate * (1 - sigmoid));
    row.dup[i] = row.dy[i] * gate * sigmoid;
  }
}

void swish_row(const double* x, double* y, double beta, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (1 + std::exp(-beta * x[i]));
}

void swish_backward_row(const double* dy, const double* x, double* dx, double beta, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    double s = 1 / (1 + std::exp(-beta * x[i]));
    dx[i] = dy[i] * (s + x[i] * s * (beta * (1 - s)));
  }
}

void adamw_row(const AdamwRow<double>& row, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    double g = row.scale * row.g[i];
    row.m[i] = row.beta1 * row.m[i] + (1 - row.beta1) * g;
    row.v[i] = row.beta2 * row.v[i] + (1 - row.beta2) * g * g;
    row.p[i] = row.keep * row.p[i] - row.rate * row.m[i] / (row.root * std::sqrt(row.v[i]) + row.eps);
  }
}

}  // namespace sextant::cpu
