#include <algorithm>
#include <cmath>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/amax.h"
#include "exec/cpu/kernels/column_sums.h"
#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

template <class T>
struct Row {
  const T *x, *w, *bias;  // bias may be null
  T *y, *m, *r;
};

template <class T>
void norm_row(const Row<T>& row, T eps, int64_t width) {
  auto [from, w, bias, to, m, r] = row;
  T mean = sum(from, width) / static_cast<T>(width);
  for (int64_t j = 0; j < width; ++j) to[j] = from[j] - mean;
  T scale = 1 / std::sqrt(dot(to, to, width) / static_cast<T>(width) + eps);
  if (bias)
    for (int64_t j = 0; j < width; ++j) to[j] = to[j] * scale * w[j] + bias[j];
  else
    for (int64_t j = 0; j < width; ++j) to[j] = to[j] * scale * w[j];
  *m = mean;
  *r = scale;
}

void run_add_layer_norm(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    int64_t width = call.in[0].shape.last();
    T eps = static_cast<T>(call.attrs.real("eps"));
    const T *a = call.in[0].as<T>(), *c = call.in[1].as<T>(), *w = call.in[2].as<T>();
    const T* bias = call.in.size() > 3 ? call.in[3].as<T>() : nullptr;
    T *x = call.out[0].as<T>(), *y = call.out[1].as<T>(), *m = call.out[2].as<T>(), *r = call.out[3].as<T>();
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t at = row * width;
        for (int64_t j = at; j < at + width; ++j) x[j] = a[j] + c[j];
        norm_row(Row<T>{x + at, w, bias, y + at, m + row, r + row}, eps, width);
      }
    });
  });
  write_amax(call, call.out[1]);
}

void run_layer_norm(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    int64_t width = call.in[0].shape.last();
    T eps = static_cast<T>(call.attrs.real("eps"));
    const T *x = call.in[0].as<T>(), *w = call.in[1].as<T>();
    const T* bias = call.in.size() > 2 ? call.in[2].as<T>() : nullptr;
    T *y = call.out[0].as<T>(), *m = call.out[1].as<T>(), *r = call.out[2].as<T>();
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        norm_row(Row<T>{x + row * width, w, bias, y + row * width, m + row, r + row}, eps, width);
    });
  });
  write_amax(call, call.out[0]);
}

template <class T>
struct LayerNormGradientRow {
  const T *dy, *x, *w, *plus;  // plus may be null
  T m, r;
  T *dx, *dw, *dbias;  // dx may be dy or plus; dw and dbias are added onto
};

template <class T>
void backward_row(const LayerNormGradientRow<T>& row, int64_t width) {
  // Copies, which the compiler knows that no store changes; and two loops, each with few enough arrays to vectorise.
  auto [dy, x, w, plus, m, r, dx, dw, dbias] = row;
  T mean_g = dot(dy, w, width) / static_cast<T>(width);
  T mean_gn = r * dot_shifted(dy, w, x, m, width) / static_cast<T>(width);
  for (int64_t j = 0; j < width; ++j) {
    dw[j] += dy[j] * (x[j] - m) * r;
    dbias[j] += dy[j];
  }
  if (plus)
    for (int64_t j = 0; j < width; ++j) dx[j] = plus[j] + r * (dy[j] * w[j] - mean_g - (x[j] - m) * r * mean_gn);
  else
    for (int64_t j = 0; j < width; ++j) dx[j] = r * (dy[j] * w[j] - mean_g - (x[j] - m) * r * mean_gn);
}

void run_layer_norm_backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    int64_t width = call.in[0].shape.last();
    RowBlocks blocks = row_blocks(call.in[0].shape.rows());
    const T *dy = call.in[0].as<T>(), *x = call.in[1].as<T>(), *w = call.in[2].as<T>();
    const T *m = call.in[3].as<T>(), *r = call.in[4].as<T>(), *plus = call.in.size() > 5 ? call.in[5].as<T>() : nullptr;
    T *dx = call.out[0].as<T>(), *dw_partials = reinterpret_cast<T*>(call.workspace);
    T* dbias_partials = dw_partials + blocks.count() * width;
    for_blocks(call.team, blocks.rows, blocks.block, [&](int64_t begin, int64_t end) {
      T* dw = dw_partials + begin / blocks.block * width;
      T* dbias = dbias_partials + begin / blocks.block * width;
      std::fill(dw, dw + width, T(0));
      std::fill(dbias, dbias + width, T(0));
      for (int64_t row = begin; row < end; ++row) {
        int64_t at = row * width;
        backward_row(
            LayerNormGradientRow<T>{dy + at, x + at, w, plus ? plus + at : nullptr, m[row], r[row], dx + at, dw, dbias},
            width);
      }
    });
    add_partials(call.team, dw_partials, blocks.count(), width, call.out[1].as<T>(), Write::over);
    if (call.out.size() > 2)
      add_partials(call.team, dbias_partials, blocks.count(), width, call.out[2].as<T>(), Write::over);
  });
}

}  // namespace

const CpuKernel layer_norm{.run = run_layer_norm};
const CpuKernel add_layer_norm{.run = run_add_layer_norm};
const CpuKernel layer_norm_backward{.run = run_layer_norm_backward};

}  // namespace sextant::cpu
