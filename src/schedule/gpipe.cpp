// GPipe (Huang et al. 2019): all forwards, then all backwards. Simple, and it keeps every microbatch in memory.
// Backwards run in microbatch order, not reversed: the rule of pipeline.h, and the last rank then starts with what it
// had first.
#include "schedule/orders.h"

namespace sextant {

Order gpipe(const PipelineShape& shape, int) {
  Order order;
  for (int m = 0; m < shape.microbatches; ++m) order.push_back({RegionKind::forward, 0, m});
  for (int m = 0; m < shape.microbatches; ++m) order.push_back({RegionKind::backward, 0, m});
  return order;
}

}  // namespace sextant
