#include "exec/cpu/vector_math.h"

#include <algorithm>
#include <cmath>

namespace sextant::cpu {

template <class T>
T dot(const T* a, const T* b, int64_t n) {
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <class T>
T dot3(const T* a, const T* b, const T* c, int64_t n) {
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i] * c[i];
  return sum;
}

template <class T>
T largest(const T* x, int64_t n) {
  return *std::max_element(x, x + n);
}

template <class T>
T sum_of(const T* x, int64_t n) {
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

template <class T>
double square_sum(const T* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

template <class T>
T exp_and_sum(T* x, int64_t n, T scale, T shift) {
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] = std::exp(scale * x[i] - shift);
  return sum;
}

template <class T>
void add_scaled(const T* x, T scale, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += scale * x[i];
}

namespace {
constexpr double kRoot = 0.7978845608028654;  // sqrt(2/pi)
constexpr double kCubic = 0.044715;
}  // namespace

template <class T>
void gelu_row(const T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T t = std::tanh(T(kRoot) * (x[i] + T(kCubic) * x[i] * x[i] * x[i]));
    y[i] = x[i] / 2 * (1 + t);
  }
}

template <class T>
void gelu_backward_row(const T* dy, const T* x, T* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T t = std::tanh(T(kRoot) * (x[i] + T(kCubic) * x[i] * x[i] * x[i]));
    T slope = T(kRoot) * (1 + 3 * T(kCubic) * x[i] * x[i]);
    dx[i] = dy[i] * ((1 + t) / 2 + x[i] / 2 * (1 - t * t) * slope);
  }
}

template <class T>
void swiglu_row(const T* gate, const T* up, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
}

template <class T>
void swiglu_backward_row(const SwigluRow<T>& row, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    T gate = row.gate[i], up = row.up[i], sigmoid = 1 / (1 + std::exp(-gate));
    row.dgate[i] = row.dy[i] * up * sigmoid * (1 + gate * (1 - sigmoid));
    row.dup[i] = row.dy[i] * gate * sigmoid;
  }
}

#define INSTANTIATE(T)                                                  \
  template T dot(const T*, const T*, int64_t);                          \
  template T dot3(const T*, const T*, const T*, int64_t);               \
  template T largest(const T*, int64_t);                                \
  template T sum_of(const T*, int64_t);                                 \
  template double square_sum(const T*, int64_t);                        \
  template T exp_and_sum(T*, int64_t, T, T);                            \
  template void add_scaled(const T*, T, T*, int64_t);                   \
  template void gelu_row(const T*, T*, int64_t);                        \
  template void gelu_backward_row(const T*, const T*, T*, int64_t);     \
  template void swiglu_row(const T*, const T*, T*, int64_t);            \
  template void swiglu_backward_row(const SwigluRow<T>&, int64_t);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace sextant::cpu
