#include <algorithm>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

// The weight of a row. In the order of experts, rows say whose slot they are; input `order` has that.
struct WeightOfRow {
  const int32_t* slots;

  WeightOfRow(const KernelCall& call, size_t order)
      : slots(call.attrs.has("in_order") ? call.in[order].as<int32_t>() : nullptr) {}
  int64_t operator()(int64_t row) const { return slots ? slots[row] : row; }
};

bool weighs_input(const Attrs& attrs) {
  return attrs.integer_or("on_input", 0) != 0;
}

// Columns of gate and up times the weight of the row.
template <class T>
struct WeightedPiece {
  static constexpr int64_t kMost = 256;
  T gate[kMost], up[kMost];

  WeightedPiece(const T* from, int64_t width, int64_t count, T weight) {
    for (int64_t j = 0; j < count; ++j) {
      gate[j] = weight * from[j];
      up[j] = weight * from[width + j];
    }
  }
};

template <class T>
void weighted_input_row(const T* x, T weight, T* y, int64_t width) {
  for (int64_t first = 0; first < width; first += WeightedPiece<T>::kMost) {
    int64_t count = std::min(WeightedPiece<T>::kMost, width - first);
    WeightedPiece<T> piece(x + first, width, count, weight);
    swiglu_row(piece.gate, piece.up, y + first, count);
  }
}

void run_weighted_swiglu(const KernelCall& call) {
  bool on_input = weighs_input(call.attrs);
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *x = call.in[0].as<T>(), *weights = call.in[1].as<T>();
    T* y = call.out[0].as<T>();
    const WeightOfRow weight_of(call, 2);
    int64_t width = call.out[0].shape.last();
    for_blocks(call.team, call.out[0].shape.rows(), rows_per_task(2 * width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* gate = x + row * 2 * width;
        if (on_input) {
          weighted_input_row(gate, weights[weight_of(row)], y + row * width, width);
          continue;
        }
        swiglu_row(gate, gate + width, y + row * width, width);
        for (int64_t j = 0; j < width; ++j) y[row * width + j] *= weights[weight_of(row)];
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

// The same where the weight is that of the input.
template <class T>
T backward_input_row(const T* dy, T weight, const T* x, int64_t width, T* dx) {
  constexpr int64_t kMost = WeightedPiece<T>::kMost;
  T dgate[kMost], dup[kMost], dweight = 0;  // of gate and up times the weight
  for (int64_t first = 0; first < width; first += kMost) {
    int64_t count = std::min(kMost, width - first);
    WeightedPiece<T> piece(x + first, width, count, weight);
    swiglu_backward_row(SwigluRow<T>{dy + first, piece.gate, piece.up, dgate, dup}, count);
    for (int64_t j = 0; j < count; ++j) {
      dweight += dgate[j] * x[first + j] + dup[j] * x[width + first + j];
      dx[first + j] = weight * dgate[j];
      dx[width + first + j] = weight * dup[j];
    }
  }
  return dweight;
}

void run_weighted_swiglu_backward(const KernelCall& call) {
  bool on_input = weighs_input(call.attrs);
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *dy = call.in[0].as<T>(), *x = call.in[1].as<T>(), *weights = call.in[2].as<T>();
    T *dx = call.out[0].as<T>(), *dweights = call.out[1].as<T>();
    const WeightOfRow weight_of(call, 3);
    int64_t width = call.in[0].shape.last();
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(2 * width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T *gradient = dy + row * width, *gate = x + row * 2 * width;
        T* to = dx + row * 2 * width;
        int64_t at = weight_of(row);
        dweights[at] = on_input ? backward_input_row(gradient, weights[at], gate, width, to)
                                : backward_row(gradient, weights[at], gate, width, to);
      }
    });
  });
}

}  // namespace

const CpuKernel weighted_swiglu{.run = run_weighted_swiglu};
const CpuKernel weighted_swiglu_backward{.run = run_weighted_swiglu_backward};
const CpuKernel weighted_swiglu_rows{.run = run_weighted_swiglu};
const CpuKernel weighted_swiglu_rows_backward{.run = run_weighted_swiglu_backward};

}  // namespace sextant::cpu
