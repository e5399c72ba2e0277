#include <algorithm>

#include "exec/cpu/kernel.h"
#include "exec/cpu/kernels/amax.h"
#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/vector_math.h"

namespace sextant::cpu {

namespace {

void run_geglu(const KernelCall& call) {
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T* x = call.in[0].as<T>();
    T* y = call.out[0].as<T>();
    int64_t width = call.out[0].shape.last();
    for_blocks(call.team, call.out[0].shape.rows(), rows_per_task(2 * width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T *gate = x + row * 2 * width, *up = gate + width;
        T* to = y + row * width;
        gelu_row(gate, to, width);
        for (int64_t j = 0; j < width; ++j) to[j] *= up[j];
      }
    });
  });
  write_amax(call, call.out[0]);
}

// The gradients of `n` elements; dgate and dup may be gate and up.
template <class T>
void backward_piece(const SwigluRow<T>& piece, int64_t n, T* through_gate, T* activated) {
  for (int64_t j = 0; j < n; ++j) through_gate[j] = piece.dy[j] * piece.up[j];
  gelu_row(piece.gate, activated, n);
  gelu_backward_row(through_gate, piece.gate, piece.dgate, n);
  for (int64_t j = 0; j < n; ++j) piece.dup[j] = piece.dy[j] * activated[j];
}

void run_geglu_backward(const KernelCall& call) {
  constexpr int64_t kPiece = 256;
  for_real_type(call.in[0].dtype, [&]<class T>() {
    const T *dy = call.in[0].as<T>(), *x = call.in[1].as<T>();
    T* dx = call.out[0].as<T>();
    int64_t width = call.in[0].shape.last();
    for_blocks(call.team, call.in[0].shape.rows(), rows_per_task(2 * width), [&](int64_t begin, int64_t end) {
      T through_gate[kPiece], activated[kPiece];
      for (int64_t row = begin; row < end; ++row)
        for (int64_t at = 0; at < width; at += kPiece) {
          const T* gate = x + row * 2 * width + at;
          T* dgate = dx + row * 2 * width + at;
          backward_piece(SwigluRow<T>{dy + row * width + at, gate, gate + width, dgate, dgate + width},
                         std::min(kPiece, width - at), through_gate, activated);
        }
    });
  });
  write_amax(call, call.out[0]);
}

}  // namespace

const CpuKernel geglu{.run = run_geglu};
const CpuKernel geglu_backward{.run = run_geglu_backward};

}  // namespace sextant::cpu
