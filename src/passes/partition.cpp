#include "passes/partition.h"

#include <algorithm>

namespace sextant {

namespace {

RegionKind region_of(Phase phase) {
  if (phase == Phase::forward) return RegionKind::forward;
  return phase == Phase::update ? RegionKind::update : RegionKind::backward;
}

}  // namespace

Program partition(Graph graph, const Plan& plan) {
  Program program{.name = graph.name, .mesh = graph.mesh, .values = std::move(graph.values)};
  for (Value& value : program.values) value.local = local_shape(value.shape, value.layout, program.mesh);

  for (RegionKind kind : {RegionKind::forward, RegionKind::backward, RegionKind::update}) {
    Region region{.kind = kind};
    for (Op& op : graph.ops)
      if (region_of(op.phase) == kind) region.ops.push_back(std::move(op));
    if (!region.ops.empty()) program.regions.push_back(std::move(region));
  }

  auto has = [&](RegionKind kind) {
    return std::any_of(program.regions.begin(), program.regions.end(), [&](const Region& r) { return r.kind == kind; });
  };
  for (int microbatch = 0; microbatch < plan.microbatches; ++microbatch)
    for (RegionKind kind : {RegionKind::forward, RegionKind::backward})
      if (has(kind)) program.schedule.push_back({.region = kind, .microbatch = microbatch});
  if (has(RegionKind::update)) program.schedule.push_back({.region = RegionKind::update});
  return program;
}

}  // namespace sextant
