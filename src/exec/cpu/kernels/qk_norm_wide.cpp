#include <algorithm>
#include <cmath>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/column_sums.h"
#include "exec/cpu/kernels/vector_math.h"
#include "targets/local_heads.h"

namespace sextant::cpu {

namespace {

// The packed rows of this rank, and where the weights of their heads are.
class WideRows {
 public:
  WideRows(const Attrs& attrs, const Tensor& qkv)
      : heads(local_heads(attrs, qkv.shape[2])),
        width(qkv.shape[2]),
        q_width(attrs.integer("heads") * heads.dim),
        k_width(attrs.integer("kv_heads") * heads.dim),
        qkv_(qkv) {}

  int64_t q_count() const { return heads.q * heads.dim; }  // elements of q in a row, then those of k
  int64_t k_count() const { return heads.kv * heads.dim; }
  // Of a head of q, or of k: the first row of its weight. Copies of a key head share one.
  int64_t q_weight(int64_t head) const { return qkv_.global_index(2, head * heads.dim); }
  int64_t k_weight(int64_t head, int64_t weights) const {
    int64_t copy = (qkv_.global_index(2, heads.k_at(head)) - q_width) / heads.dim;
    return copy * (weights / heads.dim) / (k_width / heads.dim) * heads.dim;
  }

  LocalHeads heads;
  int64_t width;             // of a row of this rank
  int64_t q_width, k_width;  // of the whole model

 private:
  const Tensor& qkv_;
};

void squares(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    WideRows rows(call.attrs, call.in[0]);
    const T* x = call.in[0].as<T>();
    T* out = call.out[0].as<T>();
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(rows.width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T *q = x + row * rows.width, *k = q + rows.q_count();
        out[2 * row] = dot(q, q, rows.q_count()) / static_cast<T>(rows.q_width);
        out[2 * row + 1] = dot(k, k, rows.k_count()) / static_cast<T>(rows.k_width);
      }
    });
  });
}

void squares_backward(const KernelCall& call) {
  for_real_type(call.in[1].dtype, [&]<class T>() {
    WideRows rows(call.attrs, call.in[1]);
    const T *dsquares = call.in[0].as<T>(), *x = call.in[1].as<T>();
    T* dx = call.out[0].as<T>();
    for_blocks(call.team, call.in[1].shape.rows(), rows_per_task(rows.width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = x + row * rows.width;
        T* to = dx + row * rows.width;
        T of_q = 2 * dsquares[2 * row] / static_cast<T>(rows.q_width);
        T of_k = 2 * dsquares[2 * row + 1] / static_cast<T>(rows.k_width);
        int64_t k_at = rows.q_count(), v_at = k_at + rows.k_count();
        for (int64_t j = 0; j < k_at; ++j) to[j] = of_q * from[j];
        for (int64_t j = k_at; j < v_at; ++j) to[j] = of_k * from[j];
        std::fill(to + v_at, to + rows.width, T(0));
      }
    });
  });
}

template <class T>
T inverse_root(T square, T eps) {
  return 1 / std::sqrt(square + eps);
}

void run_qk_norm_wide(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    WideRows rows(call.attrs, call.in[0]);
    const LocalHeads& heads = rows.heads;
    T eps = static_cast<T>(call.attrs.real("eps"));
    const T *x = call.in[0].as<T>(), *wq = call.in[1].as<T>(), *wk = call.in[2].as<T>(), *means = call.in[3].as<T>();
    int64_t weights = call.in[2].shape[0];
    T* y = call.out[0].as<T>();
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(rows.width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = x + row * rows.width;
        T *to = y + row * rows.width, rq = inverse_root(means[2 * row], eps),
          rk = inverse_root(means[2 * row + 1], eps);
        for (int64_t head = 0; head < heads.q + heads.kv; ++head, from += heads.dim, to += heads.dim) {
          bool query = head < heads.q;
          const T* w = query ? wq + rows.q_weight(head) : wk + rows.k_weight(head - heads.q, weights);
          T r = query ? rq : rk;
          for (int64_t j = 0; j < heads.dim; ++j) to[j] = from[j] * r * w[j];
        }
        if (from != to) std::copy_n(from, heads.kv * heads.dim, to);
      }
    });
  });
}

// One head of one row: what `run_qk_norm_wide_backward` knows of it.
template <class T>
struct HeadGradient {
  const T *dy, *x, *w;
  T *dx, *dw;  // dx may be dy; dw is added onto
  T r;
};

// Σ dy·w·x of the head.
template <class T>
T backward_head(const HeadGradient<T>& head, int64_t dim) {
  T projection = dot_shifted(head.dy, head.w, head.x, T(0), dim);
  for (int64_t j = 0; j < dim; ++j) {
    T gradient = head.dy[j] * head.r;
    head.dw[j] += gradient * head.x[j];
    head.dx[j] = gradient * head.w[j];
  }
  return projection;
}

// Where `run_qk_norm_wide_backward` reads and writes.
template <class T>
struct Gradients {
  explicit Gradients(const KernelCall& call)
      : dy(call.in[0].as<T>()),
        x(call.in[1].as<T>()),
        wq(call.in[2].as<T>()),
        wk(call.in[3].as<T>()),
        means(call.in[4].as<T>()),
        dx(call.out[0].as<T>()),
        dmeans(call.out[3].as<T>()),
        eps(static_cast<T>(call.attrs.real("eps"))),
        weights(call.in[3].shape[0]) {}
  const T *dy, *x, *wq, *wk, *means;
  T *dx, *dmeans, eps;
  int64_t weights;  // rows of wk
};

template <class T>
void backward_row(const WideRows& rows, const Gradients<T>& g, int64_t row, T* dwq, T* dwk) {
  const LocalHeads& heads = rows.heads;
  T r[2] = {inverse_root(g.means[2 * row], g.eps), inverse_root(g.means[2 * row + 1], g.eps)}, projections[2] = {0, 0};
  int64_t at = row * rows.width;
  for (int64_t head = 0; head < heads.q + heads.kv; ++head, at += heads.dim) {
    int part = head < heads.q ? 0 : 1;
    int64_t w = part == 0 ? rows.q_weight(head) : rows.k_weight(head - heads.q, g.weights);
    projections[part] += backward_head(HeadGradient<T>{g.dy + at, g.x + at, (part == 0 ? g.wq : g.wk) + w, g.dx + at,
                                                       (part == 0 ? dwq : dwk) + w, r[part]},
                                       heads.dim);
  }
  if (g.dx != g.dy) std::copy_n(g.dy + at, heads.kv * heads.dim, g.dx + at);
  for (int part : {0, 1}) g.dmeans[2 * row + part] = -projections[part] * r[part] * r[part] * r[part] / 2;
}

void run_qk_norm_wide_backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    WideRows rows(call.attrs, call.in[1]);
    Gradients<T> gradients(call);
    RowBlocks blocks = row_blocks(call.in[1].shape.rows());
    int64_t q_rows = call.in[2].shape[0], k_rows = call.in[3].shape[0];
    T *q_partials = reinterpret_cast<T*>(call.workspace), *k_partials = q_partials + blocks.count() * q_rows;
    for_blocks(call.team, blocks.rows, blocks.block, [&](int64_t begin, int64_t end) {
      T *dwq = q_partials + begin / blocks.block * q_rows, *dwk = k_partials + begin / blocks.block * k_rows;
      std::fill_n(dwq, q_rows, T(0));
      std::fill_n(dwk, k_rows, T(0));
      for (int64_t row = begin; row < end; ++row) backward_row(rows, gradients, row, dwq, dwk);
    });
    add_partials(call.team, q_partials, blocks.count(), q_rows, call.out[1].as<T>(), Write::over);
    add_partials(call.team, k_partials, blocks.count(), k_rows, call.out[2].as<T>(), Write::over);
  });
}

}  // namespace

const CpuKernel qk_squares{.run = squares};
const CpuKernel qk_squares_backward{.run = squares_backward};
const CpuKernel qk_norm_wide{.run = run_qk_norm_wide};
const CpuKernel qk_norm_wide_backward{.run = run_qk_norm_wide_backward};

}  // namespace sextant::cpu
