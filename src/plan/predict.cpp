#include "plan/predict.h"

#include <algorithm>

#include "ir/lane.h"

namespace sextant {

SimResult simulate_run(const LoweredRun& run, const Where& where, const SimOptions& options) {
  Pricer pricer(where.machine, where.efficiency, where.profile);
  return simulate(run.programs.train, pricer, options);
}

FlopsPerToken flops_per_token(const LoweredRun& run, int64_t tokens_per_step) {
  FlopsPerToken sum;
  for (const Program& program : run.programs.train) {
    for (const Region& region : program.regions) {
      auto runs = static_cast<double>(std::count_if(
          program.schedule.begin(), program.schedule.end(),
          [&](const Action& action) { return action.region == region.kind && action.chunk == region.chunk; }));
      for (const Op& op : region.ops) {
        Cost cost = local_cost(program, op);
        double times = last_microbatch_only(op) ? 1 : runs;
        sum.executed += times * cost.flops.n;
        if (op.phase == Phase::recompute) continue;
        sum.model_causal += times * model_flops(cost, CountAttention::causal).n;
        sum.model_full += times * model_flops(cost, CountAttention::full).n;
      }
    }
  }
  // Each Program stands for all ranks of its class.
  double ranks = static_cast<double>(run.shape.mesh.world_size()) / static_cast<double>(run.programs.train.size());
  for (double* part : {&sum.model_causal, &sum.model_full, &sum.executed})
    *part *= ranks / static_cast<double>(tokens_per_step);
  return sum;
}

}  // namespace sextant
