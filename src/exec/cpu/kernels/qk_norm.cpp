#include <algorithm>
#include <cmath>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/column_sums.h"
#include "exec/cpu/kernels/vector_math.h"
#include "targets/local_heads.h"

namespace sextant::cpu {

namespace {

template <class T>
T inverse_rms(const T* x, int64_t dim, T eps) {
  return 1 / std::sqrt(dot(x, x, dim) / static_cast<T>(dim) + eps);
}

// That of q or of k; null where heads have none.
template <class T>
const T* weight_in(const KernelCall& call, size_t at) {
  return call.in.size() > at ? call.in[at].as<T>() : nullptr;
}

void run_qk_norm(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const LocalShape& shape = call.in[0].shape;
    int64_t width = shape[2];
    LocalHeads heads = local_heads(call.attrs, width);
    T eps = static_cast<T>(call.attrs.real("eps"));
    const T *x = call.in[0].as<T>(), *wq = weight_in<T>(call, 1), *wk = weight_in<T>(call, 2);
    T* y = call.out[0].as<T>();
    for_blocks(call.team, shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = x + row * width;
        T* to = y + row * width;
        for (int64_t head = 0; head < heads.q + heads.kv; ++head, from += heads.dim, to += heads.dim) {
          const T* w = head < heads.q ? wq : wk;
          T r = inverse_rms(from, heads.dim, eps);
          for (int64_t j = 0; j < heads.dim; ++j) to[j] = from[j] * r * (w ? w[j] : T(1));
        }
        if (from != to) std::copy_n(from, heads.kv * heads.dim, to);
      }
    });
  });
}

template <class T>
struct BackwardHead {
  const T *dy, *x, *w;  // w may be null
  T *dx, *dw;           // dx may be dy; dw is added onto where there is w
};

template <class T>
void backward_head(const BackwardHead<T>& head, T eps, int64_t dim) {
  auto [dy, x, w, dx, dw] = head;
  T along = w ? dot_shifted(dy, w, x, T(0), dim) : dot(dy, x, dim);
  T r = inverse_rms(x, dim, eps), projection = along / static_cast<T>(dim) * r * r;
  if (!w) {
    for (int64_t j = 0; j < dim; ++j) dx[j] = r * (dy[j] - x[j] * projection);
    return;
  }
  for (int64_t j = 0; j < dim; ++j) {
    T gradient = dy[j];
    dw[j] += gradient * x[j] * r;
    dx[j] = r * (gradient * w[j] - x[j] * projection);
  }
}

void run_qk_norm_backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const LocalShape& shape = call.in[0].shape;
    int64_t width = shape[2];
    LocalHeads heads = local_heads(call.attrs, width);
    RowBlocks blocks = row_blocks(shape.rows());
    T eps = static_cast<T>(call.attrs.real("eps"));
    const T *dy = call.in[0].as<T>(), *x = call.in[1].as<T>(), *wq = weight_in<T>(call, 2), *wk = weight_in<T>(call, 3);
    T *dx = call.out[0].as<T>(), *q_partials = reinterpret_cast<T*>(call.workspace);
    T* k_partials = q_partials + blocks.count() * heads.dim;
    for_blocks(call.team, blocks.rows, blocks.block, [&](int64_t begin, int64_t end) {
      T *dwq = q_partials + begin / blocks.block * heads.dim, *dwk = k_partials + begin / blocks.block * heads.dim;
      if (wq) {
        std::fill_n(dwq, heads.dim, T(0));
        std::fill_n(dwk, heads.dim, T(0));
      }
      for (int64_t row = begin; row < end; ++row) {
        int64_t at = row * width;
        for (int64_t head = 0; head < heads.q + heads.kv; ++head, at += heads.dim) {
          bool query = head < heads.q;
          backward_head(BackwardHead<T>{dy + at, x + at, query ? wq : wk, dx + at, query ? dwq : dwk}, eps, heads.dim);
        }
        if (dx != dy) std::copy_n(dy + at, heads.kv * heads.dim, dx + at);
      }
    });
    if (!wq) return;
    add_partials(call.team, q_partials, blocks.count(), heads.dim, call.out[1].as<T>(), Write::over);
    add_partials(call.team, k_partials, blocks.count(), heads.dim, call.out[2].as<T>(), Write::over);
  });
}

}  // namespace

const CpuKernel qk_norm{.run = run_qk_norm};
const CpuKernel qk_norm_backward{.run = run_qk_norm_backward};

}  // namespace sextant::cpu
