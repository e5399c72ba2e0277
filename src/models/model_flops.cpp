#include "models/model_flops.h"

#include "ir/cost.h"
#include "ir/graph.h"
#include "models/model.h"

namespace sextant {

namespace {

// Backward multiplies twice what forward did: for the gradient of each operand.
constexpr double kPassesOfModel = 3;

}  // namespace

ModelFlopsPerToken model_flops_per_token(const ModelSpec& spec, int64_t seq) {
  ModelFlopsPerToken sum;
  Graph graph = build_model(spec, {.seq = seq}, single_rank_mesh());
  for (const Op& op : graph.ops) {
    Cost cost = cost_of(graph, op);
    double times = kPassesOfModel / static_cast<double>(seq);
    sum.causal += times * model_flops(cost, CountAttention::causal).n;
    sum.full += times * model_flops(cost, CountAttention::full).n;
  }
  return sum;
}

}  // namespace sextant
