#include "ir/cost.h"

namespace sextant {

Flops model_flops(const Cost& cost, CountAttention square) {
  double flops = 0;
  for (const Gemm& gemm : cost.gemms)
    if (gemm.of == Gemm::Of::model) flops += gemm.flops();
  if (const auto& a = cost.attention)
    flops += (a->backward ? 2 : 1) * 2 * a->square() * (a->head_dim + a->width_of_values()) *
             (square == CountAttention::full ? 1 : a->seen);
  return {flops};
}

}  // namespace sextant
