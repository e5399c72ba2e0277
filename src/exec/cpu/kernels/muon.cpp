#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/gemm.h"
#include "exec/cpu/kernels/vector_math.h"
#include "ops/muon.h"
#include "targets/cpu/orthogonalize_sizes.h"

namespace sextant::cpu {

namespace {

void run_muon_momentum(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    T *g = call.in[0].as<T>(), *u = call.out[0].as<T>(), *m = call.out[1].as<T>();
    T scale = *call.in[2].as<T>();
    auto momentum = static_cast<T>(call.attrs.real("momentum"));
    bool nesterov = call.attrs.integer("nesterov") != 0;
    for_blocks(call.team, call.in[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T gradient = scale * g[i];
        if (scale != 0) m[i] += (1 - momentum) * (gradient - m[i]);
        u[i] = nesterov ? gradient + momentum * (m[i] - gradient) : m[i];
      }
    });
  });
}

// One matrix, and the Newton–Schulz iteration on it. Of a tall matrix the columns are iterated on: GEMMs are then
// from the right, and the Gram matrix is symmetric, so nothing is transposed in memory.
template <class T>
class Orthogonal {
 public:
  Orthogonal(const KernelCall& call, int64_t rows) : call_(call), rows_(rows), columns_(call.in[0].shape.last()) {
    OrthogonalizeSizes sizes(call.attrs.integers("packed"), columns_, sizeof(T), call.team.size());
    std::byte* at = call.workspace;
    for (T** matrix : {&x_, &next_}) *matrix = reinterpret_cast<T*>(at), at += sizes.matrix;
    for (T** gram : {&gram_, &square_}) *gram = reinterpret_cast<T*>(at), at += sizes.gram;
    scratch_ = at;
  }

  void run(const T* from, T* to) {
    double norm = std::max(norm_of(from), kLeastNorm);
    for_elements([&](int64_t i) { x_[i] = static_cast<T>(static_cast<double>(from[i]) / norm); });
    for (int64_t step = 0; step < call_.attrs.integer("steps"); ++step) iterate();
    auto factor = static_cast<T>(muon_factor(call_.attrs, rows_, columns_));
    for_elements([&](int64_t i) { to[i] = factor * x_[i]; });
  }

 private:
  struct Extents {
    int64_t m, n, k;
  };
  bool tall() const { return rows_ > columns_; }
  int64_t shorter() const { return std::min(rows_, columns_); }
  int64_t count() const { return rows_ * columns_; }

  template <class Body>
  void for_elements(const Body& body) {
    for_blocks(call_.team, count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i);
    });
  }

  // In order, by blocks of fixed size: the same for any number of threads.
  double norm_of(const T* x) {
    double sum = 0;
    for (int64_t begin = 0; begin < count(); begin += kElementsPerTask)
      sum += square_sum(x + begin, std::min(kElementsPerTask, count() - begin));
    return std::sqrt(sum);
  }

  void multiply_into(T* c, Matrix<T> a, Matrix<T> b, const Extents& size) {
    multiply({.m = size.m, .n = size.n, .k = size.k, .a = a, .b = b, .c = c, .c_stride = size.n}, call_.team, scratch_);
  }

  void iterate() {
    int64_t s = shorter(), longer = std::max(rows_, columns_);
    Matrix<T> x{x_, columns_}, gram{gram_, s};
    multiply_into(gram_, tall() ? x.transposed() : x, tall() ? x : x.transposed(), {s, s, longer});
    multiply_into(square_, gram, gram, {s, s, s});
    // a·I + b·G + c·G²: one GEMM with it is the whole step.
    auto [a, b, c] = std::tuple(static_cast<T>(kNewtonSchulz[0]), static_cast<T>(kNewtonSchulz[1]),
                                static_cast<T>(kNewtonSchulz[2]));
    for (int64_t i = 0; i < s * s; ++i) gram_[i] = b * gram_[i] + c * square_[i] + (i % (s + 1) == 0 ? a : 0);
    if (tall())
      multiply_into(next_, x, gram, {rows_, columns_, columns_});
    else
      multiply_into(next_, gram, x, {rows_, columns_, rows_});
    std::swap(x_, next_);
  }

  const KernelCall& call_;
  int64_t rows_, columns_;
  T *x_, *next_, *gram_, *square_;
  std::byte* scratch_;
};

void run_orthogonalize(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* from = call.in[0].as<T>();
    T* to = call.out[0].as<T>();
    for (int64_t rows : call.attrs.integers("packed")) {
      Orthogonal<T>(call, rows).run(from, to);
      from += rows * call.in[0].shape.last(), to += rows * call.in[0].shape.last();
    }
  });
}

void run_muon_step(const KernelCall& call) {
  for_real_type(call.out[0].dtype, [&]<class T>() {
    T *p = call.out[0].as<T>(), *u = call.in[1].as<T>();
    T lr = *call.in[2].as<T>(), scale = *call.in[3].as<T>();
    auto keep = static_cast<T>(1 - static_cast<double>(lr) * call.attrs.real("weight_decay"));
    if (scale == 0) return;
    for_blocks(call.team, call.out[0].count(), kElementsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) p[i] = keep * p[i] - lr * u[i];
    });
  });
}

}  // namespace

const CpuKernel muon_momentum{.run = run_muon_momentum};
const CpuKernel orthogonalize{.run = run_orthogonalize};
const CpuKernel muon_step{.run = run_muon_step};

}  // namespace sextant::cpu
