#include "passes/crossed_values.h"

#include <map>
#include <utility>

#include "base/error.h"
#include "ir/alias.h"
#include "ir/program.h"

namespace sextant {

namespace {

class Crossings {
 public:
  Crossings(CrossedGraph& made, const PipelineSchedule& schedule)
      : made_(made), graph_(made.graph), shape_(schedule.shape) {
    std::optional<int> axis = graph_.mesh.copies_axis();
    BUG_IF(!axis, "{} has no copies for the schedule {}", graph_.mesh.text(), schedule.name);
    axis_ = *axis;
  }

  void run() {
    std::vector<int> chunk_of(graph_.values.size(), kNowhere);
    for (Op& op : graph_.ops) {
      if (op.phase == Phase::update) continue;
      int chunk = chunk_of_stage(shape_, op.stage);
      for (ValueId id : op.outputs) chunk_of[static_cast<size_t>(id)] = chunk;
      for (ValueId& id : op.inputs) {
        if (!differs(graph_[id]) || is_running_sum(op, id)) continue;
        bool feed = graph_[id].kind == ValueKind::feed;
        int from = feed ? 0 : chunk_of[static_cast<size_t>(id)];
        if (from != kNowhere && from != chunk) id = crossed(id);
      }
    }
  }

 private:
  static constexpr int kNowhere = -1;  // given: weights and what belongs to them

  // Whether the copies have other elements of it, or other parts of a sum.
  bool differs(const Value& value) const {
    AxisState state = value.layout.at(axis_);
    return state != kReplicated && state != kInvariant;
  }

  ValueId crossed(ValueId id) {
    auto [at, fresh] = crossed_.emplace(id, kNoValue);
    if (!fresh) return at->second;
    Value value = graph_[id];
    value.path = crossed_path(value.path);
    at->second = graph_.add(std::move(value));
    made_.sources.push_back(id);
    return at->second;
  }

  CrossedGraph& made_;
  Graph& graph_;
  const PipelineShape& shape_;
  int axis_ = 0;
  std::map<ValueId, ValueId> crossed_;
};

}  // namespace

CrossedGraph crossed_values(Graph graph, const PipelineSchedule& schedule) {
  CrossedGraph made{.graph = std::move(graph), .sources = {}};
  if (schedule.placement == StagePlacement::crossed_v) Crossings(made, schedule).run();
  return made;
}

bool is_running_sum(const Op& op, ValueId input) {
  for (const Alias& alias : aliases_of(op))
    if (alias.rule == Alias::Rule::must && op.inputs[static_cast<size_t>(alias.input)] == input) return true;
  return false;
}

}  // namespace sextant
