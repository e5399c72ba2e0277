#include <algorithm>
#include <cmath>

#include "exec/cpu/blocks.h"
#include "exec/cpu/gemm.h"
#include "exec/cpu/kernel.h"
#include "exec/cpu/vector_math.h"

namespace sextant::cpu {

namespace {

// The logits of this many bytes live at once.
constexpr int64_t kLogitBytes = int64_t{16} << 20;

struct Sizes {
  int64_t rows, hidden, vocabulary;
  int64_t chunk;  // rows whose logits live at once

  Sizes(const LocalShape& x, const LocalShape& w) : rows(x.rows()), hidden(x.last()), vocabulary(w[0]) {
    chunk = std::min(rows, std::clamp<int64_t>(kLogitBytes / 4 / vocabulary, 64, 1024));
  }
  int64_t loss_bytes() const { return round_up(rows * static_cast<int64_t>(sizeof(double)), 64); }
  int64_t logit_bytes(DType dtype) const { return round_up(chunk * vocabulary * size_of(dtype), 64); }
};

Bytes workspace(const WorkspaceQuery& query) {
  Sizes sizes(query.in[0].shape, query.in[1].shape);
  int64_t products = std::max({multiply_workspace(sizes.vocabulary, sizes.hidden, query.threads),
                               multiply_workspace(sizes.hidden, sizes.vocabulary, query.threads),
                               multiply_workspace(sizes.hidden, sizes.chunk, query.threads)});
  return {sizes.loss_bytes() + sizes.logit_bytes(query.in[0].dtype) + products};
}

enum class Want { loss, gradient };

template <class T>
struct RowLoss {
  double z_loss;
  T dloss;
  Want want;

  // The loss of one row. With Want::gradient the logits become their gradient.
  double operator()(T* logits, int64_t vocabulary, int64_t target) const {
    if (target < 0) {
      std::fill(logits, logits + vocabulary, T(0));
      return 0;
    }
    T maximum = largest(logits, vocabulary), at_target = logits[target];
    T sum = exp_and_sum(logits, vocabulary, T(1), maximum);
    double lse = static_cast<double>(maximum) + std::log(static_cast<double>(sum));
    if (want == Want::gradient) {
      T scale = dloss * static_cast<T>(1 + 2 * z_loss * lse) / sum;
      for (int64_t j = 0; j < vocabulary; ++j) logits[j] *= scale;
      logits[target] -= dloss;
    }
    return lse - static_cast<double>(at_target) + z_loss * lse * lse;
  }
};

// What both ops share: the chunks of tokens, their logits and losses. `per_chunk(begin, rows, logits, products)` sees
// the chunk's logits after `row_loss`.
template <class T, class PerChunk>
T for_chunks(const KernelCall& call, const RowLoss<T>& row_loss, const PerChunk& per_chunk) {
  Sizes sizes(call.in[0].shape, call.in[1].shape);
  const T* x = call.in[0].as<T>();
  const int32_t* targets = call.in[2].as<int32_t>();
  double* losses = reinterpret_cast<double*>(call.workspace);
  T* logits = reinterpret_cast<T*>(call.workspace + sizes.loss_bytes());
  std::byte* products = call.workspace + sizes.loss_bytes() + sizes.logit_bytes(call.in[0].dtype);
  for (int64_t begin = 0; begin < sizes.rows; begin += sizes.chunk) {
    int64_t rows = std::min(sizes.chunk, sizes.rows - begin);
    multiply(Product<T>{.m = rows,
                        .n = sizes.vocabulary,
                        .k = sizes.hidden,
                        .a = {x + begin * sizes.hidden, sizes.hidden},
                        .b = Matrix<T>{call.in[1].as<T>(), sizes.hidden}.transposed(),
                        .c = logits,
                        .c_stride = sizes.vocabulary},
             call.team, products);
    for_blocks(call.team, rows, rows_per_task(sizes.vocabulary), [&](int64_t first, int64_t end) {
      for (int64_t row = first; row < end; ++row)
        losses[begin + row] = row_loss(logits + row * sizes.vocabulary, sizes.vocabulary, targets[begin + row]);
    });
    per_chunk(begin, rows, logits, products);
  }
  double loss = 0;
  for (int64_t row = 0; row < sizes.rows; ++row) loss += losses[row];
  return static_cast<T>(loss);
}

void forward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    RowLoss<T> row_loss{call.attrs.real("z_loss"), T(1), Want::loss};
    *call.out[0].as<T>() = for_chunks<T>(call, row_loss, [](int64_t, int64_t, const T*, std::byte*) {});
  });
}

void backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    Sizes sizes(call.in[0].shape, call.in[1].shape);
    const T *x = call.in[0].as<T>(), *w = call.in[1].as<T>();
    T *dw = call.out[0].as<T>(), *dx = call.out[1].as<T>();
    RowLoss<T> row_loss{call.attrs.real("z_loss"), *call.in[3].as<T>(), Want::gradient};
    auto gradients = [&](int64_t begin, int64_t rows, const T* dlogits, std::byte* products) {
      multiply(Product<T>{.m = rows,
                          .n = sizes.hidden,
                          .k = sizes.vocabulary,
                          .a = {dlogits, sizes.vocabulary},
                          .b = {w, sizes.hidden},
                          .c = dx + begin * sizes.hidden,
                          .c_stride = sizes.hidden},
               call.team, products);
      multiply(Product<T>{.m = sizes.vocabulary,
                          .n = sizes.hidden,
                          .k = rows,
                          .a = Matrix<T>{dlogits, sizes.vocabulary}.transposed(),
                          .b = {x + begin * sizes.hidden, sizes.hidden},
                          .c = dw,
                          .c_stride = sizes.hidden,
                          .write = begin > 0 || call.accumulate() ? Write::add : Write::over},
               call.team, products);
    };
    *call.out[2].as<T>() = for_chunks<T>(call, row_loss, gradients);
  });
}

}  // namespace

const CpuKernel head_loss{.run = forward, .workspace = workspace};
const CpuKernel head_loss_backward{.run = backward, .workspace = workspace};

}  // namespace sextant::cpu
