// Breadth-first (Lamy-Poirier 2023): a looped pipeline that runs all microbatches of a chunk before the next chunk. It
// keeps every microbatch in memory, but each chunk's weights are needed in one stretch: gathered once forward, reduced
// once backward.
#include "schedule/orders.h"

namespace sextant {

Order breadth_first(const PipelineShape& shape, int) {
  Order order;
  for (int c = 0; c < shape.chunks; ++c)
    for (int m = 0; m < shape.microbatches; ++m) order.push_back({RegionKind::forward, c, m});
  for (int c = shape.chunks - 1; c >= 0; --c)
    for (int m = 0; m < shape.microbatches; ++m) order.push_back({RegionKind::backward, c, m});
  return order;
}

}  // namespace sextant
