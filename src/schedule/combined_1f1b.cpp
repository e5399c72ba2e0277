// Combined 1F1B (Megatron-LM's, for the messages of experts): 1F1B in which each backward runs as one with the forward
// that follows it, so that messages of one travel under the compute of the other. It serves on one rank too, where two
// microbatches are then in flight. On several, ranks that pair would wait for one another in turns if they kept 1F1B's
// distance: a forward must be two units ahead of the next rank's, so rank i has 2(ranks − i) microbatches in flight.
#include <algorithm>

#include "schedule/orders.h"

namespace sextant {

Order combined_1f1b(const PipelineShape& shape, int rank) {
  Order order;
  int ahead = std::min(shape.microbatches, 2 * (shape.ranks - rank) - 1);
  for (int m = 0; m < ahead; ++m) order.push_back({RegionKind::forward, 0, m});
  for (int m = 0; m < shape.microbatches; ++m) {
    bool paired = m + ahead < shape.microbatches;
    if (paired) order.push_back({RegionKind::forward, 0, m + ahead, true});
    order.push_back({RegionKind::backward, 0, m});
  }
  return order;
}

}  // namespace sextant
