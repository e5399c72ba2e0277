// Loops over n contiguous numbers, which kernels apply to rows. f32 is vectorised; f64 is plain and the truth it is
// tested against. An output may be the same row as an input. NaN goes in, NaN comes out.
#pragma once

#include <cstdint>

namespace sextant::cpu {

float dot(const float* a, const float* b, int64_t n);
double dot(const double* a, const double* b, int64_t n);

// Σ a·b·(c − shift)
float dot_shifted(const float* a, const float* b, const float* c, float shift, int64_t n);
double dot_shifted(const double* a, const double* b, const double* c, double shift, int64_t n);

float sum(const float* x, int64_t n);
double sum(const double* x, int64_t n);

void add_scaled(const float* x, float scale, float* y, int64_t n);  // y += scale·x

float largest(const float* x, int64_t n);  // n >= 1
double largest(const double* x, int64_t n);

double square_sum(const float* x, int64_t n);  // added up in double
double square_sum(const double* x, int64_t n);

// x = exp(scale·x − shift), and the sum of the new x.
float exp_and_sum(float* x, int64_t n, float scale, float shift);
double exp_and_sum(double* x, int64_t n, double scale, double shift);

// In each of `heads` heads of x, pairs (a, b) of its two halves become (a·cos − b·sin, b·cos + a·sin). All heads share
// the `half` cosines, which as many sines follow.
void turn_heads(const float* x, const float* cosines, float* y, int64_t half, int64_t heads);
void turn_heads(const double* x, const double* cosines, double* y, int64_t half, int64_t heads);

void gelu_row(const float* x, float* y, int64_t n);
void gelu_row(const double* x, double* y, int64_t n);

void gelu_backward_row(const float* dy, const float* x, float* dx, int64_t n);
void gelu_backward_row(const double* dy, const double* x, double* dx, int64_t n);

// gelu with erf instead of tanh.
void gelu_erf_row(const float* x, float* y, int64_t n);
void gelu_erf_row(const double* x, double* y, int64_t n);

void gelu_erf_backward_row(const float* dy, const float* x, float* dx, int64_t n);
void gelu_erf_backward_row(const double* dy, const double* x, double* dx, int64_t n);

void swiglu_row(const float* gate, const float* up, float* y, int64_t n);
void swiglu_row(const double* gate, const double* up, double* y, int64_t n);

// y = x/(1 + exp(−beta·x)), and dx = dy·y'(x).
void swish_row(const float* x, float* y, float beta, int64_t n);
void swish_row(const double* x, double* y, double beta, int64_t n);
void swish_backward_row(const float* dy, const float* x, float* dx, float beta, int64_t n);
void swish_backward_row(const double* dy, const double* x, double* dx, double beta, int64_t n);

template <class T>
struct SwigluRow {
  const T *dy, *gate, *up;
  T *dgate, *dup;
};
void swiglu_backward_row(const SwigluRow<float>& row, int64_t n);
void swiglu_backward_row(const SwigluRow<double>& row, int64_t n);

// With g' = scale·g: m = beta1·m + (1 − beta1)·g', v = beta2·v + (1 − beta2)·g'², then
// p = keep·p − rate·m / (root·sqrt(v) + eps).
template <class T>
struct AdamwRow {
  T* p;
  const T* g;
  T *m, *v;
  T scale, beta1, beta2, eps, keep, rate, root;
};
void adamw_row(const AdamwRow<float>& row, int64_t n);
void adamw_row(const AdamwRow<double>& row, int64_t n);

constexpr double kGeluRoot = 0.7978845608028654;  // sqrt(2/pi)
constexpr double kGeluCubic = 0.044715;
constexpr double kNormalDensity = 0.3989422804014327;  // 1/sqrt(2 pi)

}  // namespace sextant::cpu
