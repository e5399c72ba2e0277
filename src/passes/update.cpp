#include "passes/update.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/rng.h"
#include "ops/load_statistics.h"
#include "ops/lost_rows.h"
#include "ops/ops.h"
#include "ops/row_queues.h"
#include "passes/autodiff.h"
#include "passes/hops.h"
#include "passes/infer.h"
#include "passes/stages.h"
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

// The block of the model in which each parameter is used: by what is made of it, where quantized copies of stored
// shards are made ahead of all blocks.
std::map<ValueId, int> blocks_using(const Graph& graph) {
  std::map<ValueId, int> blocks;
  std::map<ValueId, ValueId> copies;  // quantized, or in another layout, and of which parameter
  for (const Op& op : graph.ops)
    for (ValueId id : op.inputs) {
      auto copy = copies.find(id);
      if (copy != copies.end()) id = copy->second;
      if (graph[id].kind != ValueKind::parameter) continue;
      auto [at, fresh] = blocks.emplace(id, op.block);
      if (at->second < 0) at->second = op.block;
      if (op.block >= 0) continue;
      for (ValueId made : op.outputs)
        if (op.def->layout_rule == LayoutRule::free || graph[made].kind == ValueKind::quantized)
          copies.emplace(made, id);
    }
  return blocks;
}

// The layout in which an optimizer keeps a state.
Layout state_layout(const OptimizerState& state, const Layout& update) {
  if (state.extent == OptimizerState::Extent::elements) return update;
  // Whole on every rank; when an op takes its part of it, the part is cut like the weight's.
  Layout layout = update;
  if (state.extent == OptimizerState::Extent::blocks) {
    if (layout.segments.dim == 1)
      for (int64_t& extent : layout.segments.extents) extent /= kStateBlock;
    return layout;
  }
  for (AxisState& axis : layout.states) axis = kInvariant;
  if (state.extent == OptimizerState::Extent::columns) layout.segments = {};
  return layout;
}

// A bf16 is the upper half of its f32 (base/halves.h); an f16 has its own exponent, and its f32 beside it.
OptimizerState full_precision_of(DType dtype) {
  if (dtype == DType::f16) return {.name = "master", .dtype = DType::f32};
  return {.name = "low", .dtype = DType::u16};
}

class Update {
 public:
  Update(Graph& graph, const UpdatePlan& plan)
      : graph_(graph),
        plan_(plan),
        settings_(plan.optimizer.resolved()),
        pairs_(parameter_gradients(graph)),
        tallies_(tallies(graph, TallyOf::load)),
        ranks_(ranks_using(graph, plan)),
        blocks_(blocks_using(graph)),
        layers_(block_count(graph)),
        weights_(optimized_weights(graph)) {
    for (auto& [parameter, weight] : weights_)
      weight.whole_blocks = state_blocks_whole(weight.shape, update_layout_of(parameter), graph.mesh);
    BUG_IF(pairs_.empty(), "{} has no parameter to update", graph.name);
    lr_ = graph.add({.path = "lr", .kind = ValueKind::feed, .dtype = wide_of(graph[pairs_[0].first].dtype)});
    step_ = graph.add({.path = "step", .kind = ValueKind::feed, .dtype = DType::i32});
  }

  void run() {
    std::vector<ValueId> squares;
    for (auto& [parameter, gradient] : pairs_) {
      parameter_ = parameter;
      gradient = moved(whole_over_stages(parameter, gradient), update_layout_of(parameter),
                       "grad." + graph_[parameter].path + ".moved");
      squares.push_back(append(squares_of(parameter, gradient)));
    }
    measure_gradients(squares);
    measure_small_gradients(squares);
    for (auto& [parameter, tally] : tallies_) {
      parameter_ = parameter;
      tally = moved(tally, invariant_layout(graph_.mesh), graph_[tally].path + ".moved");
    }
    parameter_ = kNoValue;
    ValueId scale = clip(squares);
    for (size_t first = 0, end = 0; first < pairs_.size(); first = end) {
      for (end = first + 1; end < pairs_.size() && measured_together(first, end);) ++end;
      step_on(std::span(pairs_).subspan(first, end - first), scale);
    }
    for (const auto& [parameter, tally] : tallies_) {
      parameter_ = parameter;
      if (!graph_[parameter].is_trained()) follow_load(parameter, tally, scale);
      measure_load(parameter, tally);
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

  Op squares_of(ValueId parameter, ValueId gradient) {
    std::string path = "norm." + graph_[parameter].path;
    if (!plan_.exact_sums) return make_op(graph_, ops::sum_squares, {gradient}, {}, std::move(path));
    return make_op(graph_, ops::exact_squares, {gradient}, {{"dtype", wide_name(parameter)}}, std::move(path));
  }

  std::string wide_name(ValueId parameter) const { return std::string(name_of(wide_of(graph_[parameter].dtype))); }

  Layout update_layout_of(ValueId parameter) const { return update_layout(graph_[parameter], graph_.mesh, plan_.zero); }

  ValueId whole_over_stages(ValueId parameter, ValueId gradient) {
    const std::set<int>& ranks = ranks_.at(parameter);
    if (ranks.size() < 2) return gradient;
    Op op = make_op(graph_, ops::sum_stages, {gradient}, {{"stages", std::vector<int64_t>(ranks.begin(), ranks.end())}},
                    graph_[gradient].path + ".summed");
    graph_[op.outputs[0]].layout = graph_[gradient].layout;
    return append(std::move(op));
  }

  // A stored gradient or tally that is partial is reduced where it stands, or reduced to a shard.
  ValueId moved(ValueId sum, const Layout& to, const std::string& path) {
    bool stored = true;  // until the first hop that makes a new value
    for (Op& hop : make_hops(graph_, sum, to, path)) {
      bool same_size = is_hop(hop, Transfer::all_reduce) || is_hop(hop, Transfer::nothing);
      hop.inputs[0] = sum;
      if (stored && is_hop(hop, Transfer::all_reduce)) {
        hop.inputs.push_back(sum);
        hop.attrs.set("into", int64_t{1});
      }
      stored = stored && same_size;
      sum = append(std::move(hop));
    }
    return sum;
  }

  // Whether statistics of layers have it in them.
  bool is_measured(ValueId parameter) const {
    int block = blocks_.at(parameter);
    return plan_.measures.statistics && block >= 0 && block < layers_;
  }

  void hand_out_measured(ValueId value, MeasuredTensor tensor, MeasuredNumbers numbers) {
    Measured measured{.layer = blocks_.at(parameter_), .tensor = tensor, .numbers = numbers};
    hand_out(value, measured_path(measured, graph_[parameter_].path));
    graph_[value].measured = measured;
  }

  void measure_largest(ValueId value, MeasuredTensor tensor) {
    Measured largest{.layer = blocks_.at(parameter_), .tensor = tensor, .numbers = MeasuredNumbers::largest};
    ValueId number = append(make_op(graph_, ops::absmax, {value}, {}, measured_path(largest, "absmax")));
    hand_out_measured(number, tensor, MeasuredNumbers::largest);
  }

  // Behind all squares, which a device takes together where nothing stands between them.
  void measure_gradients(const std::vector<ValueId>& squares) {
    for (size_t i = 0; i < pairs_.size(); ++i) {
      parameter_ = pairs_[i].first;
      if (!is_measured(parameter_)) continue;
      hand_out_measured(squares[i], MeasuredTensor::gradient, MeasuredNumbers::sums);
      measure_largest(pairs_[i].second, MeasuredTensor::gradient);
    }
  }

  // Whether two parameters belong to one layer whose change is measured: steps of such stand behind one another, too.
  bool measured_together(size_t one, size_t other) const {
    return is_measured(pairs_[one].first) && is_measured(pairs_[other].first) &&
           blocks_.at(pairs_[one].first) == blocks_.at(pairs_[other].first);
  }

  // For the noise scale: squares of the gradients of one microbatch, and of all, over the same parameters.
  void measure_small_gradients(const std::vector<ValueId>& squares) {
    std::vector<ValueId> small, full;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      auto at = plan_.small_gradients.squares.find(pairs_[i].first);
      if (at == plan_.small_gradients.squares.end()) continue;
      small.push_back(at->second);
      full.push_back(squares[i]);
    }
    if (small.empty()) return;
    parameter_ = kNoValue;
    for (auto& [path, of] : {std::pair{kSmallSquaresPath, small}, std::pair{kFullSquaresPath, full}})
      hand_out(append_norm_part(make_op(graph_, ops::add_squares, of, {}, std::string(path))), std::string(path));
  }

  // Numbers for metrics: "load.LAYER.peak" and the others of the op.
  void measure_load(ValueId parameter, ValueId counts) {
    Op op = make_op(graph_, ops::load_statistics, {counts}, {}, "statistics." + graph_[parameter].path);
    hand_out(parameter, op.outputs, kLoadStatistics);
    append(std::move(op));
  }

  void hand_out(ValueId parameter, std::span<const ValueId> numbers, std::span<const std::string_view> names) {
    for (size_t i = 0; i < names.size(); ++i) {
      Value& number = graph_[numbers[i]];
      number.kind = ValueKind::fetch;
      number.path = fmt::format("load.{}.{}", blocks_.at(parameter), names[i]);
    }
  }

  // The rule of a parameter that is not trained. All ranks hold it whole, and all do the same.
  void follow_load(ValueId parameter, ValueId counts, ValueId scale) {
    ValueId value = parameter;
    for (Op& hop : make_hops(graph_, parameter, invariant_layout(graph_.mesh), graph_[parameter].path + ".whole"))
      value = append(std::move(hop));
    Op op = make_op(graph_, ops::balance_bias, {value, counts, scale}, {{"speed", *graph_[parameter].balance_speed}},
                    "balance_bias." + graph_[parameter].path);
    hand_out(parameter, std::span(op.outputs).subspan(1), kBiasStatistics);
    append(std::move(op));
  }

  // Appends an op of the norm, whose output is partial along axes whose ranks hold other weights.
  ValueId append_norm_part(Op op) {
    Layout& layout = graph_[op.outputs[0]].layout;
    for (int axis = 0; axis < graph_.mesh.axis_count(); ++axis)
      if (graph_.mesh.def(axis).norm_parts) layout.states[static_cast<size_t>(axis)] = kPartial;
    return append(std::move(op));
  }

  // With the rows that were lost on the way to experts, where that can be: one message for both.
  ValueId with_lost_rows(ValueId total) {
    std::vector<ValueId> inputs{total};
    for (const auto& [parameter, lost] : tallies(graph_, TallyOf::lost_rows)) inputs.push_back(lost);
    if (inputs.size() == 1) return total;
    Attrs attrs{{"counts", graph_[inputs[1]].shape.count()}};
    return append_norm_part(make_op(graph_, ops::join_lost, std::move(inputs), attrs, "norm.parts_and_lost"));
  }

  // The norm over all of the model: every rank's parts, every stage's weights.
  ValueId clip(const std::vector<ValueId>& squares) {
    const OpDef& add = plan_.exact_sums ? ops::add_exact_squares : ops::add_squares;
    ValueId total = append_norm_part(make_op(graph_, add, squares, {}, "norm.parts"));
    ValueId sums = with_lost_rows(total);
    std::string everywhere;
    for (const Axis& axis : graph_.mesh.axes)
      everywhere += fmt::format("{}{}:I", everywhere.empty() ? "" : " ", axis.name());
    ValueId whole = append(make_op(graph_, ops::redistribute, {sums}, {{"pin", everywhere}}, "norm.total"));
    if (plan_.exact_sums) {
      BUG_IF(sums != total, "{}: rows may be lost, and sums are exact", graph_.name);
      whole = append(make_op(graph_, ops::exact_total, {whole}, {{"dtype", wide_name(pairs_[0].first)}}, "norm.whole"));
    }
    Attrs attrs{{"clip", plan_.optimizer.clip}};
    if (plan_.loss_scaling) {
      BUG_IF(sums != total, "{}: rows may be lost, and losses are scaled", graph_.name);
      return clip_scaled(whole, std::move(attrs));
    }
    if (sums != total) attrs.set("rounds", expert_rounds(graph_).done);
    Op clip = make_op(graph_, sums == total ? ops::clip_scale : ops::clip_lost, {whole}, std::move(attrs), "clip");
    std::vector<ValueId> outputs = clip.outputs;
    hand_out(outputs[0], "grad_norm");
    if (sums != total) {
      hand_out(outputs[2], std::string(kLostRowsPath));
      hand_out(outputs[3], std::string(kRoundsNeededPath));
    }
    append(std::move(clip));
    return plan_.optimizer.norm_limit ? limited(outputs[1], outputs[0]) : outputs[1];
  }

  ValueId limited(ValueId scale, ValueId norm) {
    ValueId limit = graph_.add({.path = "norm_limit", .kind = ValueKind::feed, .dtype = graph_[norm].dtype});
    return append(make_op(graph_, ops::limit_norm, {scale, norm, limit}, {}, "limit_norm"));
  }

  // Gradients are those of the scaled losses: the factor undoes it, and the scale of the next step is chosen.
  ValueId clip_scaled(ValueId squares, Attrs attrs) {
    const LossScaling& scaling = *plan_.loss_scaling;
    attrs.set("initial", scaling.initial);
    attrs.set("growth_factor", scaling.growth_factor);
    attrs.set("backoff", scaling.backoff);
    attrs.set("growth_interval", scaling.growth_interval);
    attrs.set("minimum", scaling.minimum);
    ValueId scale = graph_.find(kLossScalePath)->id, good_steps = graph_.find(kGoodStepsPath)->id;
    Op op = make_op(graph_, ops::clip_scaled, {squares, scale, good_steps}, std::move(attrs), "clip");
    std::vector<ValueId> outputs = op.outputs;
    hand_out(outputs[0], "grad_norm");
    hand_out(outputs[4], std::string(kUsedLossScalePath));
    append(std::move(op));
    return plan_.optimizer.norm_limit ? limited(outputs[1], outputs[0]) : outputs[1];
  }

  void hand_out(ValueId value, std::string path) {
    graph_[value].kind = ValueKind::fetch;
    graph_[value].path = std::move(path);
  }

  // A value that belongs to a parameter and is kept from step to step.
  ValueId keep(ValueId parameter, const OptimizerState& state, ValueKind kind = ValueKind::state) {
    const Value& p = graph_[parameter];
    StoredIn stored;
    if (!p.stored.path.empty()) {
      bool columns = state.extent == OptimizerState::Extent::columns;
      stored = {state.path_of(p.stored.path), columns ? p.stored.first_packed : p.stored.first_row};
    }
    return graph_.add({.path = state.path_of(p.path),
                       .kind = kind,
                       .dtype = state.dtype,
                       .shape = state.shape_for(weights_.at(parameter)),
                       .layout = state_layout(state, update_layout_of(parameter)),
                       .of = parameter,
                       .stored = stored,
                       .space = home_of(kind)});
  }

  MemorySpace home_of(ValueKind kind) const {
    bool offloaded = kind == ValueKind::low_bits ? plan_.offload.weights : plan_.offload.optimizer;
    return offloaded ? plan_.offload.to : MemorySpace::device;
  }

  class Step;
  // Pairs of a parameter and its gradient.
  void step_on(std::span<const std::pair<ValueId, ValueId>> pairs, ValueId scale);

  // From the optimizer's layout back into the stored weight; nothing to do where its op has worked on the weight
  // itself.
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
  OptimizerSettings settings_;
  std::vector<std::pair<ValueId, ValueId>> pairs_, tallies_;
  std::map<ValueId, std::set<int>> ranks_;
  std::map<ValueId, int> blocks_;
  int layers_;
  std::map<ValueId, OptimizedWeight> weights_;
  ValueId lr_ = kNoValue, step_ = kNoValue;
  ValueId parameter_ = kNoValue;  // whose ops are being appended
};

// The view that the optimizer has of the update while it writes one parameter's step.
class Update::Step final : public UpdateScope {
 public:
  Step(Update& update, ValueId parameter, ValueId gradient, ValueId scale)
      : update_(update),
        weight_(update.weights_.at(parameter)),
        parameter_(parameter),
        value_(parameter),
        gradient_(gradient),
        scale_(scale) {
    Graph& graph = update.graph_;
    DType dtype = graph[parameter].dtype, wide = wide_of(dtype);
    const Optimizer& optimizer = update.plan_.optimizer;
    for (OptimizerState state : optimizer.def->states(weight_, update.settings_)) {
      if (state.dtype == DType::f32) state.dtype = wide;  // f64 in tests of gradients
      states_.push_back(update.keep(parameter, state));
    }
    for (Op& hop : make_hops(graph, parameter, update.update_layout_of(parameter), graph[parameter].path + ".shard"))
      value_ = update.append(std::move(hop));
    if (dtype != wide && !rounds_weight())
      low_bits_ = update.keep(parameter, full_precision_of(dtype), ValueKind::low_bits);
  }

  const OptimizedWeight& weight() const override { return weight_; }
  const OptimizerSettings& settings() const override { return update_.settings_; }
  ValueId value() const override { return value_; }
  ValueId gradient() const override { return gradient_; }
  ValueId state(int i) const override { return states_.at(static_cast<size_t>(i)); }
  ValueId low_bits() const override { return low_bits_; }
  bool rounds_weight() const override { return update_.plan_.optimizer.rounds_weights; }
  Attrs rounding() const override {
    const Value& p = update_.graph_[parameter_];
    return {{"key", static_cast<int64_t>(hash64(p.stored_path()) >> 1)}, {"first_row", p.stored.first_row}};
  }
  ValueId lr() const override { return update_.lr_; }
  ValueId scale() const override { return scale_; }
  ValueId step() const override { return update_.step_; }
  double weight_decay() const override {
    return update_.plan_.optimizer.def->decays(weight_) ? settings().weight_decay.value_or(0) : 0;
  }

  std::vector<ValueId> emit(const OpDef& def, std::vector<ValueId> inputs, Attrs attrs) override {
    std::string path = fmt::format("{}.{}", def.name, update_.graph_[parameter_].path);
    update_.append(make_op(update_.graph_, def, std::move(inputs), std::move(attrs), std::move(path)));
    return update_.graph_.ops.back().outputs;
  }

  void write(const OpDef& def, std::vector<ValueId> inputs, Attrs attrs) override {
    BUG_IF(inputs.empty() || inputs[0] != value_ || written_, "{} must write {}, and once", def.name,
           update_.graph_[parameter_].path);
    if (low_bits_ != kNoValue) inputs.push_back(low_bits_);
    std::vector<ValueId> outputs = emit(def, std::move(inputs), std::move(attrs));
    next_ = outputs[0];
    next_low_ = outputs.back();
    update_.graph_[next_].layout = update_.update_layout_of(parameter_);
    update_.store(parameter_, next_);
    written_ = true;
  }

  bool written() const { return written_; }
  ValueId parameter() const { return parameter_; }

  // Copies of the weight as it is before the update, and of its low bits where it has some.
  void keep_before() {
    before_.push_back(emit(ops::duplicate, {value_}, {})[0]);
    if (low_bits_ != kNoValue) before_.push_back(emit(ops::duplicate, {low_bits_}, {})[0]);
  }

  void measure_change() {
    std::vector<ValueId> inputs{before_[0], next_};
    if (low_bits_ != kNoValue) inputs.insert(inputs.end(), {before_[1], next_low_});
    update_.hand_out_measured(emit(ops::change_statistics, std::move(inputs), {})[0], MeasuredTensor::weight,
                              MeasuredNumbers::sums);
  }
  void measure_largest() { update_.measure_largest(next_, MeasuredTensor::weight); }

 private:
  Update& update_;
  const OptimizedWeight& weight_;
  ValueId parameter_, value_, gradient_, scale_, low_bits_ = kNoValue, next_ = kNoValue, next_low_ = kNoValue;
  std::vector<ValueId> states_, before_;
  bool written_ = false;
};

void Update::step_on(std::span<const std::pair<ValueId, ValueId>> pairs, ValueId scale) {
  std::deque<Step> steps;
  for (auto [parameter, gradient] : pairs) {
    parameter_ = parameter;
    // Just before it is used: it need not be there for all weights at once.
    if (plan_.exact_sums)
      gradient = append(make_op(graph_, ops::exact_value, {gradient}, {{"dtype", wide_name(parameter)}},
                                graph_[gradient].path + ".value"));
    steps.emplace_back(*this, parameter, gradient, scale);
  }
  const bool measured = is_measured(pairs.front().first);
  auto for_each_step = [&](const auto& body) {
    for (Step& step : steps) {
      parameter_ = step.parameter();
      body(step);
    }
  };
  if (measured) for_each_step([](Step& step) { step.keep_before(); });
  for_each_step([&](Step& step) {
    plan_.optimizer.def->update(step);
    BUG_IF(!step.written(), "{} does not write {}", plan_.optimizer.def->name, graph_[parameter_].path);
  });
  // One kind of op after the other: a device takes ops of a kind together that stand side by side.
  if (measured) for_each_step([](Step& step) { step.measure_change(); });
  if (measured) for_each_step([](Step& step) { step.measure_largest(); });
}

}  // namespace

void append_update(Graph& graph, const UpdatePlan& plan) {
  Update(graph, plan).run();
}

}  // namespace sextant
