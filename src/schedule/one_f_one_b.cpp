// 1F1B (PipeDream-Flush, Narayanan et al. 2021): rank i runs just enough forwards for the first backward to come back,
// then one backward for each forward. The bubble is GPipe's, but only ranks − i microbatches are in flight.
#include <algorithm>

#include "schedule/orders.h"

namespace sextant {

Order one_f_one_b(const PipelineShape& shape, int rank) {
  Order order;
  int in_flight = std::min(shape.microbatches, shape.ranks - rank);
  for (int m = 0; m < in_flight; ++m) order.push_back({RegionKind::forward, 0, m});
  for (int m = 0; m < shape.microbatches; ++m) {
    order.push_back({RegionKind::backward, 0, m});
    if (m + in_flight < shape.microbatches) order.push_back({RegionKind::forward, 0, m + in_flight});
  }
  return order;
}

}  // namespace sextant
