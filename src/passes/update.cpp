#include "passes/update.h"

#include <map>
#include <set>

#include "base/error.h"
#include "base/halves.h"
#include "ops/ops.h"
#include "passes/autodiff.h"
#include "passes/hops.h"
#include "passes/infer.h"
#include "passes/storage.h"

namespace sextant {

namespace {

// The pipeline ranks that use each parameter, from the ops that read it, directly or as a view.
std::map<ValueId, std::set<int>> ranks_using(const Graph& graph, const UpdatePlan& plan) {
  std::map<ValueId, std::set<int>> ranks;
  for (const Op& op : graph.ops)
    for (ValueId id : op.inputs)
      if (graph[id].kind == ValueKind::parameter) ranks[id].insert(plan.rank_of_stage(op.stage));
  return ranks;
}

class Update {
 public:
  Update(Graph& graph, const UpdatePlan& plan)
      : graph_(graph), plan_(plan), pairs_(parameter_gradients(graph)), ranks_(ranks_using(graph, plan)) {
    BUG_IF(pairs_.empty(), "{} has no parameter to update", graph.name);
    lr_ = graph.add({.path = "lr", .kind = ValueKind::feed, .dtype = wide_of(graph[pairs_[0].first].dtype)});
    step_ = graph.add({.path = "step", .kind = ValueKind::feed, .dtype = DType::i32});
  }

  void run() {
    std::vector<ValueId> squares;
    for (auto& [parameter, gradient] : pairs_) {
      parameter_ = parameter;
      gradient = in_update_layout(parameter, whole_over_stages(parameter, gradient));
      squares.push_back(append(make_op(graph_, ops::sum_squares, {gradient}, {}, "norm." + graph_[parameter].path)));
    }
    parameter_ = kNoValue;
    ValueId scale = clip(squares);
    for (const auto& [parameter, gradient] : pairs_) {
      parameter_ = parameter;
      step_on(parameter, gradient, scale);
    }
    infer(graph_, Phase::update);
  }

 private:
  ValueId append(Op op) {
    op.phase = Phase::update;
    op.parameter = parameter_;
    graph_.ops.push_back(std::move(op));
    return graph_.ops.back().outputs[0];
  }

  Layout update_layout_of(ValueId parameter) const { return update_layout(graph_[parameter], graph_.mesh, plan_.zero); }

  ValueId whole_over_stages(ValueId parameter, ValueId gradient) {
    const std::set<int>& ranks = ranks_.at(parameter);
    if (ranks.size() < 2) return gradient;
    Op op = make_op(graph_, ops::sum_stages, {gradient}, {{"stages", std::vector<int64_t>(ranks.begin(), ranks.end())}},
                    graph_[gradient].path + ".summed");
    graph_[op.outputs[0]].layout = graph_[gradient].layout;
    return append(std::move(op));
  }

  // A stored gradient that is partial is reduced where it stands, or reduced to a shard.
  ValueId in_update_layout(ValueId parameter, ValueId gradient) {
    bool stored = true;  // until the first hop that makes a new value
    for (Op& hop :
         make_hops(graph_, gradient, update_layout_of(parameter), "grad." + graph_[parameter].path + ".moved")) {
      bool same_size = is_hop(hop, Transfer::all_reduce) || is_hop(hop, Transfer::nothing);
      hop.inputs[0] = gradient;
      if (stored && is_hop(hop, Transfer::all_reduce)) {
        hop.inputs.push_back(gradient);
        hop.attrs.set("into", int64_t{1});
      }
      stored = stored && same_size;
      gradient = append(std::move(hop));
    }
    return gradient;
  }

  // The norm over all of the model: every rank's parts, every stage's weights.
  ValueId clip(const std::vector<ValueId>& squares) {
    Op sum = make_op(graph_, ops::add_squares, squares, {}, "norm.parts");
    ValueId total = sum.outputs[0];
    for (int axis = 0; axis < graph_.mesh.axis_count(); ++axis)
      if (graph_.mesh.def(axis).norm_parts) graph_[total].layout.states[static_cast<size_t>(axis)] = kPartial;
    append(std::move(sum));
    std::string everywhere;
    for (const Axis& axis : graph_.mesh.axes)
      everywhere += fmt::format("{}{}:I", everywhere.empty() ? "" : " ", axis.name());
    ValueId whole = append(make_op(graph_, ops::redistribute, {total}, {{"pin", everywhere}}, "norm.total"));
    Op clip = make_op(graph_, ops::clip_scale, {whole}, {{"clip", plan_.optimizer.clip}}, "clip");
    ValueId norm = clip.outputs[0], scale = clip.outputs[1];
    graph_[norm].kind = ValueKind::fetch;
    graph_[norm].path = "grad_norm";
    append(std::move(clip));
    return scale;
  }

  ValueId state_like(ValueId parameter, const OptimizerState& state, DType dtype, ValueKind kind = ValueKind::state) {
    const Value& p = graph_[parameter];
    StoredIn stored;
    if (!p.stored.path.empty()) stored = {state.path_of(p.stored.path), p.stored.first_row};
    return graph_.add({.path = state.path_of(p.path),
                       .kind = kind,
                       .dtype = dtype,
                       .shape = p.shape,
                       .layout = update_layout_of(parameter),
                       .of = parameter,
                       .stored = stored});
  }

  void step_on(ValueId parameter, ValueId gradient, ValueId scale) {
    std::string path = graph_[parameter].path;
    DType dtype = graph_[parameter].dtype, wide = wide_of(dtype);
    ValueId m = state_like(parameter, kAdamWStates[0], wide), v = state_like(parameter, kAdamWStates[1], wide);
    double decay = graph_[parameter].shape.rank() >= 2 ? plan_.optimizer.weight_decay : 0;
    ValueId p = parameter;
    for (Op& hop : make_hops(graph_, parameter, update_layout_of(parameter), path + ".shard"))
      p = append(std::move(hop));
    std::vector<ValueId> inputs{p, gradient, m, v, lr_, scale, step_};
    if (dtype != wide) inputs.push_back(state_like(parameter, {"low"}, DType::u16, ValueKind::low_bits));
    ValueId next = append(make_op(graph_, ops::adamw, std::move(inputs),
                                  {{"beta1", plan_.optimizer.beta1},
                                   {"beta2", plan_.optimizer.beta2},
                                   {"eps", plan_.optimizer.eps},
                                   {"weight_decay", decay}},
                                  "adamw." + path));
    graph_[next].layout = update_layout_of(parameter);
    store(parameter, next);
  }

  // From the optimizer's layout back into the stored weight; nothing to do where adamw has worked on the weight itself.
  void store(ValueId parameter, ValueId next) {
    std::vector<Op> hops = make_hops(graph_, next, graph_[parameter].layout, graph_[parameter].path + ".next");
    bool moves = false;
    for (const Op& hop : hops) moves = moves || is_hop(hop, Transfer::all_gather);
    if (!moves) return;
    for (Op& hop : hops) {
      if (is_hop(hop, Transfer::all_gather)) {
        hop.inputs.push_back(parameter);
        hop.attrs.set("into", int64_t{1});
      }
      append(std::move(hop));
    }
  }

  Graph& graph_;
  const UpdatePlan& plan_;
  std::vector<std::pair<ValueId, ValueId>> pairs_;
  std::map<ValueId, std::set<int>> ranks_;
  ValueId lr_ = kNoValue, step_ = kNoValue;
  ValueId parameter_ = kNoValue;  // whose ops are being appended
};

}  // namespace

void append_update(Graph& graph, const UpdatePlan& plan) {
  Update(graph, plan).run();
}

}  // namespace sextant
