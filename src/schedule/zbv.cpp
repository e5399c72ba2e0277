// Zero-bubble V (Qi et al. 2023, section 6): two chunks a rank, placed as a V, so that the first rank also holds the
// last stage and starts the backward itself. With F = B = W and at least 2·ranks − 1 microbatches no rank idles between
// its first and its last action, with no more activations than 1F1B keeps on its first rank.
#include <algorithm>
#include <initializer_list>

#include "schedule/orders.h"

namespace sextant {

namespace {

struct Kind {
  RegionKind region;
  int chunk;
};

constexpr Kind kF0{RegionKind::forward, 0}, kB0{RegionKind::backward, 0}, kW0{RegionKind::weight, 0};
constexpr Kind kF1{RegionKind::forward, 1}, kB1{RegionKind::backward, 1}, kW1{RegionKind::weight, 1};

// Writes a pattern over and over, each kind counting its own microbatches, and leaves out those there are not.
class PatternWriter {
 public:
  explicit PatternWriter(int microbatches) : microbatches_(microbatches) {}

  void repeat(int times, std::initializer_list<Kind> pattern) {
    for (int i = 0; i < times; ++i)
      for (const Kind& kind : pattern) {
        int microbatch = next_[static_cast<int>(kind.region)][kind.chunk]++;
        if (microbatch < microbatches_) order_.push_back({kind.region, kind.chunk, microbatch});
      }
  }

  Order order() && { return std::move(order_); }

 private:
  int microbatches_;
  int next_[3][2] = {};
  Order order_;
};

}  // namespace

Order zbv(const PipelineShape& shape, int rank) {
  // Fewer microbatches than fill the V are the first of a full one: leaving whole microbatches out breaks no order.
  int full = std::max(shape.microbatches, 2 * shape.ranks - 1);
  int below = shape.ranks - rank;  // ranks from this one to the turn of the V
  PatternWriter writer(shape.microbatches);
  writer.repeat(2 * below - 1, {kF0});    // until the first microbatch is back from the turn
  writer.repeat(rank, {kF1, kF0});        // until its gradient comes down from the last stage
  writer.repeat(below, {kF1, kB1, kW1});  // until the gradient is back from the turn
  writer.repeat(full - shape.ranks, {kF0, kB0, kW0, kF1, kB1, kW1});
  writer.repeat(rank, {kB0, kB1});  // no F is left: gradients first, others wait for them
  writer.repeat(below, {kB0, kW0});
  writer.repeat(full, {kW1});  // what is left of W
  writer.repeat(full, {kW0});
  return std::move(writer).order();
}

}  // namespace sextant
