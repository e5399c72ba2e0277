#include "passes/stages.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace sextant {

namespace {

constexpr double kRounding = 1e-12;  // what sums of the same costs in another order may differ by
constexpr size_t kLongestPeriod = 64;

struct ModelCosts {
  double before = 0, after = 0;
  std::vector<double> blocks;
};

// The first op after the blocks of the model. It and all later ops belong to the last stage, including later blocks,
// which are those of multi-token prediction.
size_t first_behind_blocks(const Graph& graph) {
  auto in_block = [](const Op& op) { return op.block >= 0; };
  auto first = std::find_if(graph.ops.begin(), graph.ops.end(), in_block);
  return static_cast<size_t>(std::find_if_not(first, graph.ops.end(), in_block) - graph.ops.begin());
}

ModelCosts costs_of(const Graph& graph) {
  ModelCosts costs;
  costs.blocks.resize(static_cast<size_t>(block_count(graph)), 0);
  size_t behind = first_behind_blocks(graph);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    double flops = cost_of(graph, graph.ops[i]).flops.n;
    if (i >= behind)
      costs.after += flops;
    else
      (graph.ops[i].block >= 0 ? costs.blocks[static_cast<size_t>(graph.ops[i].block)] : costs.before) += flops;
  }
  return costs;
}

enum class Ends : uint8_t {
  with_blocks,
  may_be_alone,  // the first stage may have the embedding alone, and the last the head
};

// The stages needed when none may cost more than `limit`, with as many blocks in each as fit. Every stage gets at least
// one block, but for ends that may be alone, and enough are left for the stages behind it.
std::vector<int> fill_up_to(const ModelCosts& costs, int stages, double limit, Ends ends) {
  std::vector<int> counts;
  size_t next = 0;
  bool alone = ends == Ends::may_be_alone;
  for (int stage = 0; stage < stages; ++stage) {
    bool last = stage == stages - 1;
    double total = stage == 0 ? costs.before : 0;
    int count = 0, least = alone && (stage == 0 || last) ? 0 : 1;
    size_t leave = static_cast<size_t>(std::max(0, stages - 1 - stage - (alone && !last ? 1 : 0)));
    double tail = last ? costs.after : 0;
    while (next + leave < costs.blocks.size() && (count < least || total + costs.blocks[next] + tail <= limit)) {
      total += costs.blocks[next++];
      ++count;
    }
    counts.push_back(count);
  }
  return next == costs.blocks.size() ? counts : std::vector<int>{};
}

double costliest(const ModelCosts& costs, const std::vector<int>& counts) {
  double worst = 0;
  size_t next = 0;
  for (size_t stage = 0; stage < counts.size(); ++stage) {
    double total = (stage == 0 ? costs.before : 0) + (stage + 1 == counts.size() ? costs.after : 0);
    for (int i = 0; i < counts[stage]; ++i) total += costs.blocks[next++];
    worst = std::max(worst, total);
  }
  return worst;
}

// The smallest p with blocks[i] = blocks[i + p] throughout: 1 where all blocks are alike, their number where they are
// not.
size_t period_of(const std::vector<double>& blocks) {
  for (size_t p = 1; p < blocks.size() && p <= kLongestPeriod; ++p)
    if (std::equal(blocks.begin() + static_cast<std::ptrdiff_t>(p), blocks.end(), blocks.begin())) return p;
  return blocks.size();
}

// The least a costliest stage can cost is what some run of consecutive blocks costs, with an end or without, or an end
// alone: all such costs, ascending. Runs that begin a period later cost the same, so the blocks of one period are
// enough to begin with.
std::vector<double> possible_limits(const ModelCosts& costs) {
  size_t count = costs.blocks.size(), period = period_of(costs.blocks);
  std::vector<double> limits{costs.before, costs.after};
  for (size_t first = 0; first < count && first <= period; ++first) {
    double total = first == 0 ? costs.before : 0;
    for (size_t last = first; last < count; ++last) {
      total += costs.blocks[last];
      limits.push_back(total);
      // As long as a run that begins some periods later and reaches the end.
      bool to_end = last == count - 1 || (first > 0 && (count - 1 - last) % period == 0);
      if (to_end) limits.push_back(total + costs.after);
    }
  }
  std::sort(limits.begin(), limits.end());
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  return limits;
}

// The counts whose costliest stage costs least.
std::vector<int> balanced_under(const ModelCosts& costs, int stages, const std::vector<double>& limits, Ends ends) {
  // A larger limit never needs more stages: those under which blocks are left over come first, and are not looked at.
  auto first = std::partition_point(limits.begin(), limits.end(), [&](double limit) {
    return fill_up_to(costs, stages, limit * (1 + kRounding), ends).empty();
  });
  std::vector<int> best;
  double least = std::numeric_limits<double>::max();
  for (auto limit = first; limit != limits.end(); ++limit) {
    std::vector<int> counts = fill_up_to(costs, stages, *limit * (1 + kRounding), ends);
    if (counts.empty()) continue;
    double worst = costliest(costs, counts);
    if (worst < least) best = counts, least = worst;
    if (worst <= *limit * (1 + kRounding)) break;
  }
  return best;
}

}  // namespace

int block_count(const Graph& graph) {
  int count = 0;
  for (size_t i = 0; i < first_behind_blocks(graph); ++i) count = std::max(count, graph.ops[i].block + 1);
  return count;
}

std::vector<int> balanced_blocks(const Graph& graph, int stages) {
  ModelCosts costs = costs_of(graph);
  int blocks = static_cast<int>(costs.blocks.size());
  if (stages == 1) return {blocks};
  BUG_IF(blocks + 2 < stages, "{} blocks for {} stages", blocks, stages);
  std::vector<double> limits = possible_limits(costs);
  if (blocks < stages) return balanced_under(costs, stages, limits, Ends::may_be_alone);
  // An end that is alone must pay: it is the exception.
  std::vector<int> usual = balanced_under(costs, stages, limits, Ends::with_blocks),
                   alone = balanced_under(costs, stages, limits, Ends::may_be_alone);
  return costliest(costs, alone) * (1 + kRounding) < costliest(costs, usual) ? alone : usual;
}

void assign_stages(Graph& graph, const std::vector<int>& blocks_per_stage) {
  std::vector<int> stage_of_block;
  for (size_t stage = 0; stage < blocks_per_stage.size(); ++stage)
    stage_of_block.insert(stage_of_block.end(), static_cast<size_t>(blocks_per_stage[stage]), static_cast<int>(stage));
  BUG_IF(static_cast<int>(stage_of_block.size()) != block_count(graph), "{} blocks assigned, the model has {}",
         stage_of_block.size(), block_count(graph));
  size_t behind = first_behind_blocks(graph);
  int last = static_cast<int>(blocks_per_stage.size()) - 1;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    Op& op = graph.ops[i];
    op.stage = i >= behind ? last : op.block >= 0 ? stage_of_block[static_cast<size_t>(op.block)] : 0;
  }
}

}  // namespace sextant
