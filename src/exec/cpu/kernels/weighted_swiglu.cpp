#include <algorithm>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

void run_weighted_swiglu(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *x = call.in[0].as<T>(), *weights = call.in[1].as<T>();
    T* y = call.out[0].as<T>();
    int64_t width = call.out[0].shape.last();
    for_blocks(call.team, call.out[0].shape.rows(), rows_per_task(2 * width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* gate = x + row * 2 * width;
        swiglu_row(gate, gate + width, y + row * width, width);
        for (int64_t j = 0; j < width; ++j) y[row * width + j] *= weights[row];
      }
    });
  });
}

// The gradient of a row's weight; dx becomes that of swiglu times the weight. dx may stand where x does, so pieces of
// up are taken aside before they are written over.
template <class T>
T backward_row(const T* dy, T weight, const T* gate, int64_t width, T* dgate) {
  constexpr int64_t kPiece = 256;
  T up[kPiece], dweight = 0;
  for (int64_t first = 0; first < width; first += kPiece) {
    int64_t count = std::min(kPiece, width - first);
    std::copy_n(gate + width + first, count, up);
    T *dg = dgate + first, *du = dgate + width + first;
    swiglu_backward_row(SwigluRow<T>{dy + first, gate + first, up, dg, du}, count);
    for (int64_t j = 0; j < count; ++j) {
      dweight += du[j] * up[j];  // du is dy·silu(gate) so far
      dg[j] *= weight;
      du[j] *= weight;
    }
  }
  return dweight;
}

void run_weighted_swiglu_backward(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *dy = call.in[0].as<T>(), *x = call.in[1].as<T>(), *weights = call.in[2].as<T>();
    T *dx = call.out[0].as<T>(), *dweights = call.out[1].as<T>();
    int64_t width = call.in[0].shape.last();
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(2 * width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        dweights[row] = backward_row(dy + row * width, weights[row], x + row * 2 * width, width, dx + row * 2 * width);
    });
  });
}

}  // namespace

const CpuKernel weighted_swiglu{.run = run_weighted_swiglu};
const CpuKernel weighted_swiglu_backward{.run = run_weighted_swiglu_backward};
const CpuKernel weighted_swiglu_rows{.run = run_weighted_swiglu};
const CpuKernel weighted_swiglu_rows_backward{.run = run_weighted_swiglu_backward};

}  // namespace sextant::cpu
