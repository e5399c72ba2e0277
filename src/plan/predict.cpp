#include "plan/predict.h"

#include <algorithm>

#include "ir/lane.h"
#include "models/model_flops.h"

namespace sextant {

SimResult simulate_run(const LoweredRun& run, const Where& where, const SimOptions& options) {
  Pricer pricer(where.machine, where.efficiency, where.profile, where.expert_imbalance, where.placement);
  return simulate(run.programs.train, pricer, options);
}

FlopsPerToken flops_per_token(const LoweredRun& run, const BatchSection& batch) {
  ModelFlopsPerToken model = model_flops_per_token(run.shape.spec, batch.seq);
  FlopsPerToken sum{.model_causal = model.causal, .model_full = model.full};
  for (const Program& program : run.programs.train) {
    for (const Region& region : program.regions) {
      auto runs = static_cast<double>(std::count_if(
          program.schedule.begin(), program.schedule.end(),
          [&](const Action& action) { return action.region == region.kind && action.chunk == region.chunk; }));
      for (const Op& op : region.ops) sum.executed += (once_per_step(op) ? 1 : runs) * local_cost(program, op).flops.n;
    }
  }
  // Each Program stands for all ranks of its class.
  double ranks = static_cast<double>(run.shape.mesh.world_size()) / static_cast<double>(run.programs.train.size());
  sum.executed *= ranks / static_cast<double>(batch.sequences * batch.seq);
  return sum;
}

double peak_flops_per_s(const Machine& machine, DType weights) {
  return weights == DType::f32 ? machine.peak("fp32") : std::max(machine.peak("bf16"), machine.peak("fp16"));
}

}  // namespace sextant
