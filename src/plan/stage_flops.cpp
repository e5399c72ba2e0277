#include "plan/stage_flops.h"

namespace sextant {

Flops region_flops(const Program& program, RegionKind kind, int chunk) {
  Flops total;
  for (const Region& region : program.regions) {
    if (region.kind != kind || (chunk >= 0 && region.chunk != chunk)) continue;
    for (const Op& op : region.ops) total += local_cost(program, op).flops;
  }
  return total;
}

Durations stage_flops(const RunPrograms& programs, const PipelineSchedule& pipeline, Flops unit) {
  const PipelineShape& shape = pipeline.shape;
  Durations durations = uniform_durations(shape, {0, 0, 0});
  for (int rank = 0; rank < shape.ranks; ++rank)
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      auto stage = static_cast<size_t>(stage_of(shape, pipeline.placement, rank, chunk));
      auto units = [&](RegionKind kind) {
        return region_flops(programs.train[static_cast<size_t>(rank)], kind, chunk).n / unit.n;
      };
      durations.forward[stage] = units(RegionKind::forward);
      durations.backward[stage] = units(RegionKind::backward);
      durations.weight[stage] = units(RegionKind::weight);  // zero where weight gradients are part of backward
    }
  return durations;
}

}  // namespace sextant
