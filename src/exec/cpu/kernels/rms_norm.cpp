#include <algorithm>
#include <cmath>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/amax.h"
#include "exec/cpu/kernels/column_sums.h"
#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

template <class T>
void norm_row(const T* from, const T* w, T* to, T* r, T eps, int64_t width) {
  T scale = 1 / std::sqrt(dot(from, from, width) / static_cast<T>(width) + eps);
  *r = scale;
  for (int64_t j = 0; j < width; ++j) to[j] = from[j] * scale * w[j];
}

void run_add_rms_norm(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    int64_t width = call.in[0].shape.last();
    T eps = static_cast<T>(call.attrs.real("eps"));
    const T *a = call.in[0].as<T>(), *c = call.in[1].as<T>(), *w = call.in[2].as<T>();
    T *sum = call.out[0].as<T>(), *y = call.out[1].as<T>(), *r = call.out[2].as<T>();
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t at = row * width;
        for (int64_t j = at; j < at + width; ++j) sum[j] = a[j] + c[j];
        norm_row(sum + at, w, y + at, r + row, eps, width);
      }
    });
  });
  write_amax(call, call.out[1]);
}

void run_rms_norm(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    int64_t width = call.in[0].shape.last();
    T eps = static_cast<T>(call.attrs.real("eps"));
    const T *x = call.in[0].as<T>(), *w = call.in[1].as<T>();
    T *y = call.out[0].as<T>(), *r = call.out[1].as<T>();
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) norm_row(x + row * width, w, y + row * width, r + row, eps, width);
    });
  });
  write_amax(call, call.out[0]);
}

template <class T>
struct RmsGradientRow {
  const T *dy, *x, *w, *plus;  // plus may be null
  T *dx, *dw;                  // dx may be dy or plus; dw is added onto
};

template <class T>
void backward_row(const RmsGradientRow<T>& row, T r, int64_t width) {
  T projection = dot_shifted(row.dy, row.w, row.x, T(0), width) / static_cast<T>(width) * r * r;
  for (int64_t j = 0; j < width; ++j) {
    T dy = row.dy[j], x = row.x[j];
    row.dw[j] += dy * x * r;
    row.dx[j] = r * (dy * row.w[j] - x * projection) + (row.plus ? row.plus[j] : T(0));
  }
}

void run_rms_norm_backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    int64_t width = call.in[0].shape.last();
    RowBlocks blocks = row_blocks(call.in[0].shape.rows());
    const T *dy = call.in[0].as<T>(), *x = call.in[1].as<T>(), *w = call.in[2].as<T>(), *r = call.in[3].as<T>();
    const T* plus = call.in.size() > 4 ? call.in[4].as<T>() : nullptr;
    T *dx = call.out[0].as<T>(), *dw = call.out[1].as<T>(), *partials = reinterpret_cast<T*>(call.workspace);
    for_blocks(call.team, blocks.rows, blocks.block, [&](int64_t begin, int64_t end) {
      T* partial = partials + begin / blocks.block * width;
      std::fill(partial, partial + width, T(0));
      for (int64_t row = begin; row < end; ++row) {
        int64_t at = row * width;
        backward_row(RmsGradientRow<T>{dy + at, x + at, w, plus ? plus + at : nullptr, dx + at, partial}, r[row],
                     width);
      }
    });
    add_partials(call.team, partials, blocks.count(), width, dw, Write::over);
  });
  write_amax(call, call.out[0]);
}

}  // namespace

const CpuKernel rms_norm{.run = run_rms_norm};
const CpuKernel add_rms_norm{.run = run_add_rms_norm};
const CpuKernel rms_norm_backward{.run = run_rms_norm_backward};

}  // namespace sextant::cpu
