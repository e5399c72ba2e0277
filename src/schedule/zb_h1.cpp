// Zero-bubble H1 (Qi et al. 2023): 1F1B whose backward is split. Only the input gradient is on the way to the ranks
// before, so weight gradients are put off to when there would be nothing else to do. Rank i is i W behind its B: the
// further down the pipeline, the more W it keeps for the end, while its last gradients travel to rank 0. With F = B = W
// the bubble is a third of 1F1B's, and never more microbatches wait for their B.
#include <algorithm>

#include "schedule/orders.h"

namespace sextant {

Order zb_h1(const PipelineShape& shape, int rank) {
  Order order;
  int in_flight = std::min(shape.microbatches, shape.ranks - rank);
  for (int m = 0; m < in_flight; ++m) order.push_back({RegionKind::forward, 0, m});
  for (int m = 0; m < shape.microbatches; ++m) {
    order.push_back({RegionKind::backward, 0, m});
    // F before W: the ranks after this one wait for it.
    if (m + in_flight < shape.microbatches) order.push_back({RegionKind::forward, 0, m + in_flight});
    if (m >= rank) order.push_back({RegionKind::weight, 0, m - rank});
  }
  for (int m = std::max(0, shape.microbatches - rank); m < shape.microbatches; ++m)
    order.push_back({RegionKind::weight, 0, m});
  return order;
}

}  // namespace sextant
