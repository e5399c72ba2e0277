// Interleaved 1F1B (Narayanan et al. 2021): each rank holds several chunks and passes groups of `ranks` microbatches
// through them in turn, so that filling the pipeline takes one chunk's time a rank, not all chunks'. The bubble shrinks
// by the number of chunks; more activations are in flight, and there are more messages.
#include <algorithm>

#include "schedule/orders.h"

namespace sextant {

namespace {

// The k-th forward of every rank: group by group, in a group chunk by chunk, in a chunk its microbatches in order.
Action nth_forward(const PipelineShape& shape, int k) {
  int group_size = shape.ranks * shape.chunks;
  int group = k / group_size, within = k % group_size;
  return {RegionKind::forward, within / shape.ranks, group * shape.ranks + within % shape.ranks};
}

// Backwards go the same way, through the chunks from the last.
Action nth_backward(const PipelineShape& shape, int k) {
  Action action = nth_forward(shape, k);
  return {RegionKind::backward, shape.chunks - 1 - action.chunk, action.microbatch};
}

}  // namespace

Order interleaved(const PipelineShape& shape, int rank) {
  int total = shape.microbatches * shape.chunks;
  // Until its first backward a rank runs all chunks but the last for one group, and then two more forwards for each
  // rank that follows: one on the way to the last stage, one on the way back.
  int warm_up = std::min(total, (shape.chunks - 1) * shape.ranks + 2 * (shape.ranks - rank - 1));
  Order order;
  for (int k = 0; k < warm_up; ++k) order.push_back(nth_forward(shape, k));
  for (int k = 0; k < total; ++k) {
    if (warm_up + k < total) order.push_back(nth_forward(shape, warm_up + k));
    order.push_back(nth_backward(shape, k));
  }
  return order;
}

}  // namespace sextant
