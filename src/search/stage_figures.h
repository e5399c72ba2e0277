// Costs of a rank's Program, as figures that add up: those of one and of two blocks give the cost of a block, and of
// many blocks (search_bound.h).
#pragma once

#include <algorithm>

#include "cost/price.h"
#include "exec/sim/region_work.h"
#include "ir/program.h"

namespace sextant {

// Of a microbatch that is neither the first nor the last.
constexpr int kAnyMicrobatch = -1;

// Bytes outside the device's memory.
struct OffloadedBytes {
  double weights = 0, optimizer = 0;  // on the host
  double optimizer_shards = 0;        // divided by the ranks among which ZeRO would
  double nvme = 0, nvme_shards = 0;
  // On the host: what a microbatch holds from its forward on, and what goes there for the update, all at once.
  double held = 0, for_update = 0;

  void add(const OffloadedBytes& other, double times);
};

// Of a stage, a block or an end of the model: what they take adds up.
struct StageFigures {
  RegionWork forward, backward, weight, update;
  // Seconds of a region by itself, with its waits for its own messages and for the host (RankWalk::alone).
  double forward_alone = 0, backward_alone = 0, weight_alone = 0;
  double weights = 0, gradients = 0, optimizer = 0;  // bytes
  // The same, each buffer divided by the ranks among which ZeRO would: those of experts are on fewer.
  double weight_shards = 0, gradient_shards = 0, optimizer_shards = 0;
  // Bytes that one microbatch holds from one of its regions to another.
  double forward_to_backward = 0, forward_to_weight = 0, backward_to_weight = 0;
  double passing = 0;  // bytes beside weights, gradients and optimizer, when the most microbatches and blocks are held
  OffloadedBytes offloaded;

  StageFigures& add(const StageFigures& other, double times);
  double persistent() const { return weights + gradients + optimizer; }
  double per_microbatch() const { return forward.compute + backward.compute + weight.compute; }
  double host() const { return forward.host + backward.host + weight.host; }
  double least_update() const { return std::max(update.compute, update.beside); }
  // Least seconds of each region.
  double least_forward() const { return std::max(forward.compute, forward_alone); }
  double least_backward() const { return std::max(backward.compute, backward_alone); }
  double least_weight() const { return std::max(weight.compute, weight_alone); }
};

StageFigures figures_of(const Program& program, Pricer& pricer);

// Bytes that a rank has beside what is held and what stays.
double scratch_of(const Program& program, const StageFigures& figures);

}  // namespace sextant
