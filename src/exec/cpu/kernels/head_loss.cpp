#include <algorithm>
#include <cmath>
#include <limits>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/gemm.h"
#include "exec/cpu/kernels/gemm_check.h"
#include "exec/cpu/kernels/vector_math.h"
#include "targets/cpu/head_loss_sizes.h"

namespace sextant::cpu {

namespace {

enum class Want { loss, gradient };

// The log-sum-exp of a row over the whole vocabulary: found here, or from the parts that the ranks exchanged.
template <class T>
struct LogSumExp {
  const T* parts = nullptr;  // [groups, rows], or null
  int64_t groups = 0, rows = 0;

  double whole(int64_t row) const {
    double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t g = 0; g < groups; ++g) maximum = std::max(maximum, static_cast<double>(parts[g * rows + row]));
    for (int64_t g = 0; g < groups; ++g) sum += std::exp(static_cast<double>(parts[g * rows + row]) - maximum);
    return maximum + std::log(sum);
  }
};

template <class T>
double lse_here(T* logits, int64_t vocabulary) {
  if (vocabulary == 0) return -std::numeric_limits<double>::infinity();
  T maximum = largest(logits, vocabulary);
  return static_cast<double>(maximum) + std::log(static_cast<double>(exp_and_sum(logits, vocabulary, T(1), maximum)));
}

template <class T>
struct RowLoss {
  double z_loss;
  T dloss;
  Want want;
  LogSumExp<T> lse_of;
  const Tensor& w;

  // The loss of one row. With Want::gradient the logits become their gradient.
  double operator()(T* logits, int64_t vocabulary, int64_t row, int64_t target) const {
    if (target < 0) {
      std::fill(logits, logits + vocabulary, T(0));
      return 0;
    }
    int64_t here = w.local_index(0, target);
    double at_target = here < 0 ? 0 : static_cast<double>(logits[here]);
    double lse;
    T sum = 1;  // what the exponentials still have to be divided by
    if (lse_of.parts) {
      lse = lse_of.whole(row);
      if (want == Want::gradient) exp_and_sum(logits, vocabulary, T(1), static_cast<T>(lse));
    } else {
      T maximum = largest(logits, vocabulary);
      sum = exp_and_sum(logits, vocabulary, T(1), maximum);
      lse = static_cast<double>(maximum) + std::log(static_cast<double>(sum));
    }
    if (want == Want::gradient) {
      T scale = dloss * static_cast<T>(1 + 2 * z_loss * lse) / sum;
      for (int64_t j = 0; j < vocabulary; ++j) logits[j] *= scale;
      if (here >= 0) logits[here] -= dloss;
    }
    return here < 0 ? 0 : lse - at_target + z_loss * lse * lse;
  }
};

// Where the parts stand among the inputs, when they are given: behind the fixed ones.
template <class T>
LogSumExp<T> lse_of(const KernelCall& call, size_t fixed_inputs) {
  int64_t groups = call.attrs.integer_or("groups", 0);
  if (groups == 0) return {};
  return {call.in[fixed_inputs].as<T>(), groups, call.in[0].shape.rows()};
}

// Loop over chunks of tokens and their logits, shared by all three ops. `per_row(logits, vocabulary, row)` returns the
// row's number; `per_chunk(begin, rows, logits, GEMMs)` gets the chunk's logits after that. Returns the address of the
// numbers.
template <class T, class PerRow, class PerChunk>
const double* for_chunks(const KernelCall& call, const PerRow& per_row, const PerChunk& per_chunk) {
  HeadLossSizes sizes(call.in[0].shape, call.in[1].shape);
  const T* x = call.in[0].as<T>();
  int64_t vocabulary = call.in[1].real_extent(0);
  double* numbers = reinterpret_cast<double*>(call.workspace);
  T* logits = reinterpret_cast<T*>(call.workspace + sizes.loss_bytes());
  std::byte* gemms = call.workspace + sizes.loss_bytes() + sizes.logit_bytes(call.in[0].dtype);
  for (int64_t begin = 0; begin < sizes.rows; begin += sizes.chunk) {
    int64_t rows = std::min(sizes.chunk, sizes.rows - begin);
    multiply_checked(Gemm<T>{.m = rows,
                             .n = vocabulary,
                             .k = sizes.hidden,
                             .a = {x + begin * sizes.hidden, sizes.hidden},
                             .b = Matrix<T>{call.in[1].as<T>(), sizes.hidden}.transposed(),
                             .c = logits,
                             .c_stride = vocabulary},
                     call, gemms);
    for_blocks(call.team, rows, rows_per_task(vocabulary), [&](int64_t first, int64_t end) {
      for (int64_t row = first; row < end; ++row)
        numbers[begin + row] = per_row(logits + row * vocabulary, vocabulary, begin + row);
    });
    per_chunk(begin, rows, logits, gemms);
  }
  return numbers;
}

template <class T>
T total_loss(const KernelCall& call, const RowLoss<T>& row_loss, const auto& per_chunk) {
  const int32_t* targets = call.in[2].as<int32_t>();
  const double* losses = for_chunks<T>(
      call, [&](T* logits, int64_t vocabulary, int64_t row) { return row_loss(logits, vocabulary, row, targets[row]); },
      per_chunk);
  double loss = 0;
  for (int64_t row = 0; row < call.in[0].shape.rows(); ++row) loss += losses[row];
  return static_cast<T>(loss);
}

void run_head_loss(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    RowLoss<T> row_loss{call.attrs.real("z_loss"), T(1), Want::loss, lse_of<T>(call, 3), call.in[1]};
    *call.out[0].as<T>() = total_loss<T>(call, row_loss, [](int64_t, int64_t, const T*, std::byte*) {});
  });
}

void part_lse(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const double* lse = for_chunks<T>(
        call, [](T* logits, int64_t vocabulary, int64_t) { return lse_here(logits, vocabulary); },
        [](int64_t, int64_t, const T*, std::byte*) {});
    for (int64_t row = 0; row < call.in[0].shape.rows(); ++row) call.out[0].as<T>()[row] = static_cast<T>(lse[row]);
  });
}

void run_head_loss_backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    HeadLossSizes sizes(call.in[0].shape, call.in[1].shape);
    int64_t vocabulary = call.in[1].real_extent(0);
    const T *x = call.in[0].as<T>(), *w = call.in[1].as<T>();
    T *dw = call.out[0].as<T>(), *dx = call.out[1].as<T>();
    if (!call.accumulate()) std::fill(dw + vocabulary * sizes.hidden, dw + call.out[0].count(), T(0));  // padding
    RowLoss<T> row_loss{call.attrs.real("z_loss"), *call.in[3].as<T>(), Want::gradient, lse_of<T>(call, 4), call.in[1]};
    auto gradients = [&](int64_t begin, int64_t rows, const T* dlogits, std::byte* gemms) {
      multiply_checked(Gemm<T>{.m = rows,
                               .n = sizes.hidden,
                               .k = vocabulary,
                               .a = {dlogits, vocabulary},
                               .b = {w, sizes.hidden},
                               .c = dx + begin * sizes.hidden,
                               .c_stride = sizes.hidden},
                       call, gemms);
      multiply_checked(Gemm<T>{.m = vocabulary,
                               .n = sizes.hidden,
                               .k = rows,
                               .a = Matrix<T>{dlogits, vocabulary}.transposed(),
                               .b = {x + begin * sizes.hidden, sizes.hidden},
                               .c = dw,
                               .c_stride = sizes.hidden,
                               .write = begin > 0 || call.accumulate() ? Write::add : Write::over},
                       call, gemms);
    };
    *call.out[2].as<T>() = total_loss<T>(call, row_loss, gradients);
  });
}

}  // namespace

const CpuKernel head_loss{.run = run_head_loss};
const CpuKernel head_loss_backward{.run = run_head_loss_backward};
const CpuKernel head_lse{.run = part_lse};

}  // namespace sextant::cpu
