// Loops over contiguous numbers, vectorised: what kernels do to a row. Inputs and outputs may be the same row.
#pragma once

#include <cstdint>

namespace sextant::cpu {

template <class T> T dot(const T* a, const T* b, int64_t n);
template <class T> T dot3(const T* a, const T* b, const T* c, int64_t n);     // Σ a·b·c
template <class T> T largest(const T* x, int64_t n);                       // n >= 1
template <class T> T sum_of(const T* x, int64_t n);
template <class T> double square_sum(const T* x, int64_t n);               // added up in double
template <class T> T exp_and_sum(T* x, int64_t n, T scale, T shift);       // x = exp(scale·x − shift); Σ of the new x
template <class T> void add_scaled(const T* x, T scale, T* y, int64_t n);  // y += scale·x
template <class T> void gelu_row(const T* x, T* y, int64_t n);
template <class T> void gelu_backward_row(const T* dy, const T* x, T* dx, int64_t n);
template <class T> void swiglu_row(const T* gate, const T* up, T* y, int64_t n);

// dgate and dup may be the rows gate and up.
template <class T>
struct SwigluRow {
  const T *dy, *gate, *up;
  T *dgate, *dup;
};
template <class T> void swiglu_backward_row(const SwigluRow<T>& row, int64_t n);

}  // namespace sextant::cpu
