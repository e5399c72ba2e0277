#include "passes/autodiff.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "ir/alias.h"
#include "ops/ops.h"
#include "passes/hops.h"
#include "passes/storage.h"

namespace sextant {

namespace {

// Which values lead from a parameter to something: only these need gradients.
std::vector<bool> reached_by_parameters(const Graph& graph) {
  std::vector<bool> reached(graph.values.size(), false);
  for (const Value& value : graph.values) reached[static_cast<size_t>(value.id)] = value.kind == ValueKind::parameter;
  for (const Op& op : graph.ops) {
    bool any =
        std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) { return reached[static_cast<size_t>(id)]; });
    for (ValueId id : op.outputs) reached[static_cast<size_t>(id)] = any;
  }
  return reached;
}

class Autodiff {
 public:
  Autodiff(Graph& graph, const Differentiation& what)
      : graph_(graph), zero_(what.zero), exact_parts_(what.exact_parts), needed_(reached_by_parameters(graph)) {
    for (const Loss& loss : what.losses) gradients_[loss.loss] = loss.seed;
    if (exact_parts_ > 0) find_moved_parameters();
  }

  void run() {
    size_t forward_ops = graph_.ops.size();
    for (size_t i = forward_ops; i-- > 0;) {
      Op op = graph_.ops[i];  // a copy: emitting ops may move the list
      for (ValueId id : op.outputs)
        if (graph_[id].kind == ValueKind::activation && graph_[id].of != kNoValue) add_up(id, op);
      if (op.def->backward && wanted(op)) differentiate(op);
    }
    replace_forward_outputs(forward_ops);
    count_terms();
  }

 private:
  class Scope;

  bool wanted(const Op& op) const {
    bool has_gradient =
        std::any_of(op.outputs.begin(), op.outputs.end(), [&](ValueId id) { return gradients_.contains(id); });
    bool leads =
        std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) { return needed_[static_cast<size_t>(id)]; });
    return has_gradient && leads;
  }

  void differentiate(const Op& op);

  // Adds one contribution to a value's gradient. Parameters accumulate in place over microbatches, others in this one.
  void contribute(ValueId to, ValueId gradient, const Op& cause) {
    if (auto moved = moved_parameters_.find(to); moved != moved_parameters_.end()) to = moved->second;
    if (graph_[to].kind == ValueKind::parameter) return contribute_to_parameter(to, gradient, cause);
    auto [at, fresh] = gradients_.emplace(to, gradient);
    if (fresh) return;
    if (is_summed_on(at->second, gradient)) {
      add_onto(at->second, graph_.ops.back());
      return;
    }
    Op sum = make_op(graph_, ops::add, {at->second, gradient}, {}, "d." + graph_[to].path);
    at->second = append(std::move(sum), cause, Phase::input_gradient, {gradient_layout(graph_[to].layout)});
  }

  // Whether the op just appended, which made `gradient`, may go on with the sum that an op of its kind began: nobody
  // has read that.
  bool is_summed_on(ValueId sum, ValueId gradient) const {
    const Op& producer = graph_.ops.back();
    if (producer.def->accumulate == Accumulate::unsupported || producer.outputs[0] != gradient) return false;
    for (size_t i = graph_.ops.size() - 1; i-- > 0;) {
      const Op& op = graph_.ops[i];
      if (std::find(op.inputs.begin(), op.inputs.end(), sum) != op.inputs.end()) return false;
      if (std::find(op.outputs.begin(), op.outputs.end(), sum) != op.outputs.end())
        return op.def == producer.def && op.outputs[0] == sum && graph_[sum].layout == graph_[gradient].layout;
    }
    return false;
  }

  // The op adds onto the sum itself; its output is the sum's next version.
  static void add_onto(ValueId& sum, Op& producer) {
    producer.inputs.push_back(sum);
    producer.attrs.set("accumulate", int64_t{1});
    sum = producer.outputs[0];
  }

  // In backward, where it is reduced over ranks beside the gradients of its layer.
  void add_up(ValueId value, const Op& cause) {
    Value total{.path = "tally." + graph_[value].path,
                .kind = ValueKind::tally,
                .dtype = graph_[value].dtype,
                .shape = graph_[value].shape,
                .layout = graph_[value].layout,
                .of = graph_[value].of,
                .counted = graph_[value].counted};
    Op sum = make_op(graph_, ops::accumulate, {graph_.add(std::move(total)), value}, {}, "tally." + graph_[value].path);
    append(std::move(sum), cause, Phase::input_gradient, {graph_[value].layout});
  }

  void contribute_to_parameter(ValueId parameter, ValueId gradient, const Op& cause) {
    Layout stored = stored_gradient_layout(graph_[parameter], graph_.mesh, zero_);
    auto at = totals_.find(parameter);
    if (at == totals_.end()) {
      const Value& p = graph_[parameter];
      bool narrow = graph_.ops.back().attrs.integer_or("narrow_gradient", 0) != 0;
      ValueId total = graph_.add({.path = "grad." + p.path,
                                  .kind = ValueKind::gradient,
                                  .dtype = exact_parts_ > 0 ? DType::f64
                                           : narrow         ? graph_[gradient].dtype
                                                            : wide_of(p.dtype),
                                  .shape = p.shape,
                                  .layout = stored,
                                  .of = parameter});
      at = totals_.emplace(parameter, total).first;
    }
    if (exact_parts_ > 0) gradient = as_exact_term(parameter, gradient, cause);
    for (Op& hop : make_hops(graph_, gradient, stored, graph_[gradient].path + ".moved"))
      gradient = append(std::move(hop), cause, Phase::input_gradient, {});
    Op& producer = graph_.ops.back();
    bool in_place = producer.def->accumulate == Accumulate::supported && producer.outputs[0] == gradient;
    if (in_place) return add_onto(at->second, producer);
    Op sum = make_op(graph_, ops::accumulate, {at->second, gradient}, {}, "grad." + graph_[parameter].path);
    at->second = append(std::move(sum), cause, Phase::input_gradient, {stored});
  }

  // A weight that was gathered is the weight: what reduces its gradients must find exact terms, each use's own.
  void find_moved_parameters() {
    for (const Op& op : graph_.ops) {
      if (op.def->layout_rule != LayoutRule::free || op.inputs.size() != 1) continue;
      auto before = moved_parameters_.find(op.inputs[0]);
      if (before != moved_parameters_.end())
        moved_parameters_[op.outputs[0]] = before->second;
      else if (graph_[op.inputs[0]].kind == ValueKind::parameter)
        moved_parameters_[op.outputs[0]] = op.inputs[0];
    }
  }

  // Before it meets any other: sums of such terms do not depend on who adds them in which order.
  ValueId as_exact_term(ValueId parameter, ValueId gradient, const Op& cause) {
    Op term = make_op(graph_, ops::exact_sum, {gradient}, {}, graph_[gradient].path + ".exact");
    terms_of_[parameter].push_back(term.outputs[0]);
    return append(std::move(term), cause, Phase::input_gradient, {graph_[gradient].layout});
  }

  // How many terms a sum has bounds each: only now are all uses of a weight known.
  void count_terms() {
    std::map<ValueId, int64_t> terms;
    for (const auto& [parameter, uses] : terms_of_)
      for (ValueId term : uses) terms[term] = exact_parts_ * static_cast<int64_t>(uses.size());
    for (Op& op : graph_.ops)
      if (auto at = op.outputs.empty() ? terms.end() : terms.find(op.outputs[0]); at != terms.end())
        op.attrs.set("terms", at->second);
  }

  // Without layouts, the outputs keep those they have.
  ValueId append(Op op, const Op& cause, Phase phase, const std::vector<Layout>& layouts) {
    // Ops on deferred weight gradients are deferred with them.
    bool deferred = std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) { return deferred_.contains(id); });
    op.phase = deferred ? Phase::weight_gradient : phase;
    op.block = cause.block;
    op.stage = cause.stage;
    op.where = cause.where;
    if (op.phase == Phase::weight_gradient) deferred_.insert(op.outputs.begin(), op.outputs.end());
    for (size_t i = 0; i < layouts.size(); ++i) graph_[op.outputs[i]].layout = layouts[i];
    if (op.def->layout_rule == LayoutRule::free) label_hop(graph_, op);
    graph_.ops.push_back(std::move(op));
    return graph_.ops.back().outputs[0];
  }

  // Ops whose backward also yields their outputs do not run in training: their readers take the backward's value.
  void replace_forward_outputs(size_t forward_ops) {
    if (replaced_.empty()) return;
    std::vector<Op> kept;
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      Op& op = graph_.ops[i];
      bool replaced =
          i < forward_ops && !op.outputs.empty() &&
          std::all_of(op.outputs.begin(), op.outputs.end(), [&](ValueId id) { return replaced_.contains(id); });
      if (replaced) continue;
      for (ValueId& id : op.inputs)
        if (auto at = replaced_.find(id); at != replaced_.end()) id = at->second;
      kept.push_back(std::move(op));
    }
    graph_.ops = std::move(kept);
    for (const auto& [forward, backward] : replaced_) {
      graph_[backward].kind = graph_[forward].kind;
      graph_[backward].path = std::exchange(graph_[forward].path, graph_[forward].path + ".forward");
      graph_[forward].kind = ValueKind::activation;
    }
  }

  Graph& graph_;
  int zero_;
  int64_t exact_parts_;
  std::map<ValueId, ValueId> moved_parameters_;  // with exact sums: the parameter that a value is, in another layout
  std::map<ValueId, std::vector<ValueId>> terms_of_;  // of parameters: the exact terms of its sum
  std::vector<bool> needed_;
  std::set<ValueId> deferred_;            // made by weight-gradient ops
  std::map<ValueId, ValueId> gradients_;  // of activations
  std::map<ValueId, ValueId> totals_;     // of parameters: the latest version
  std::map<ValueId, ValueId> replaced_;   // forward outputs that the backward op yields
};

class Autodiff::Scope final : public BackwardScope {
 public:
  Scope(Autodiff& diff, const Op& op) : diff_(diff), op_(op) {}

  const Op& op() const override { return op_; }

  ValueId output_gradient(int i) const override {
    auto at = diff_.gradients_.find(op_.outputs[static_cast<size_t>(i)]);
    return at == diff_.gradients_.end() ? kNoValue : at->second;
  }

  bool needs_gradient(int i) const override {
    return diff_.needed_[static_cast<size_t>(op_.inputs[static_cast<size_t>(i)])];
  }

  void emit(const Emission& e) override {
    Graph& graph = diff_.graph_;
    Op made = make_op(graph, e.def, e.inputs, e.attrs, op_.path + ".backward");
    std::vector<Layout> layouts;
    for (size_t o = 0; o < made.outputs.size(); ++o) {
      int of = e.gradient_of[o];
      ValueId source =
          of >= 0 ? op_.inputs[static_cast<size_t>(of)] : op_.outputs[static_cast<size_t>(kForwardOutput - of)];
      layouts.push_back(of >= 0 ? gradient_layout(graph[source].layout) : graph[source].layout);
      graph[made.outputs[o]].path = (of >= 0 ? "d." : "") + graph[source].path;
      if (of < 0) diff_.replaced_[source] = made.outputs[o];
    }
    std::vector<ValueId> outputs = made.outputs;
    diff_.append(std::move(made), op_, e.phase, layouts);
    for (size_t o = 0; o < outputs.size(); ++o)
      if (e.gradient_of[o] >= 0 && needs_gradient(e.gradient_of[o]))
        diff_.contribute(op_.inputs[static_cast<size_t>(e.gradient_of[o])], outputs[o], op_);
  }

  void pass(int i, ValueId gradient) override { diff_.contribute(op_.inputs[static_cast<size_t>(i)], gradient, op_); }

 private:
  Autodiff& diff_;
  const Op& op_;
};

void Autodiff::differentiate(const Op& op) {
  Scope scope(*this, op);
  op.def->backward(scope);
}

}  // namespace

void autodiff(Graph& graph, const Differentiation& what) {
  Autodiff(graph, what).run();
}

namespace {

// Each value of the kind with its latest version: through the ops that update it in place.
std::map<ValueId, ValueId> latest_versions(const Graph& graph, ValueKind kind) {
  std::map<ValueId, ValueId> latest;
  for (const Value& value : graph.values)
    if (value.kind == kind) latest[value.id] = value.id;
  std::map<ValueId, ValueId> origin;
  for (const auto& [id, same] : latest) origin[id] = same;
  for (const Op& op : graph.ops) {
    for (const Alias& alias : aliases_of(op)) {
      if (alias.rule != Alias::Rule::must) continue;
      auto at = origin.find(op.inputs[static_cast<size_t>(alias.input)]);
      if (at == origin.end()) continue;
      ValueId next = op.outputs[static_cast<size_t>(alias.output)];
      origin[next] = at->second;
      latest[at->second] = next;
    }
  }
  return latest;
}

}  // namespace

std::vector<std::pair<ValueId, ValueId>> tallies(const Graph& graph, TallyOf counted) {
  std::vector<std::pair<ValueId, ValueId>> out;
  for (const auto& [id, version] : latest_versions(graph, ValueKind::tally))
    if (graph[id].counted == counted) out.emplace_back(graph[id].of, version);
  return out;
}

std::vector<std::pair<ValueId, ValueId>> parameter_gradients(const Graph& graph) {
  std::vector<std::pair<ValueId, ValueId>> out;
  std::map<ValueId, ValueId> gradients;  // by parameter
  for (const auto& [id, version] : latest_versions(graph, ValueKind::gradient))
    gradients.emplace(graph[id].of, version);
  for (const Value& value : graph.values) {
    if (value.kind != ValueKind::parameter) continue;
    if (auto at = gradients.find(value.id); at != gradients.end()) out.emplace_back(value.id, at->second);
  }
  return out;
}

}  // namespace sextant
