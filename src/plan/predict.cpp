#include "plan/predict.h"

#include <algorithm>

#include "ir/lane.h"
#include "models/model.h"

namespace sextant {

SimResult simulate_run(const LoweredRun& run, const Where& where, const SimOptions& options) {
  Pricer pricer(where.machine, where.efficiency, where.profile, where.expert_imbalance, where.placement);
  return simulate(run.programs.train, pricer, options);
}

namespace {

// Backward multiplies twice what forward did: for the gradient of each operand.
constexpr double kPassesOfModel = 3;

}  // namespace

FlopsPerToken model_flops_per_token(const ModelSpec& spec, int64_t seq) {
  FlopsPerToken sum;
  Graph graph = build_model(spec, {.seq = seq}, single_rank_mesh());
  for (const Op& op : graph.ops) {
    Cost cost = cost_of(graph, op);
    double times = kPassesOfModel / static_cast<double>(seq);
    sum.model_causal += times * model_flops(cost, CountAttention::causal).n;
    sum.model_full += times * model_flops(cost, CountAttention::full).n;
  }
  return sum;
}

FlopsPerToken flops_per_token(const LoweredRun& run, const BatchSection& batch) {
  FlopsPerToken sum = model_flops_per_token(run.shape.spec, batch.seq);
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

}  // namespace sextant
