#include "passes/measure_tensors.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/float_range.h"
#include "base/fp8.h"
#include "ir/names.h"
#include "ops/ops.h"
#include "passes/autodiff.h"
#include "passes/hops.h"
#include "passes/stages.h"

namespace sextant {

namespace {

bool is_partial(const Layout& layout) {
  return std::any_of(layout.states.begin(), layout.states.end(), [](const AxisState& state) {
    return state.kind == StateKind::partial || state.kind == StateKind::partial_max;
  });
}

// Of a number that is made of all elements: a part of it where ranks hold parts, the same where they hold the same.
Layout layout_of_number(const Layout& of, AxisState part) {
  Layout layout{.states = of.states, .order = {}, .segments = {}};
  for (AxisState& state : layout.states)
    if (state.kind == StateKind::sharded) state = part;
  return layout;
}

// Ranks along these axes that have a sum's parts.
int64_t parts_along(const Mesh& mesh, const Layout& layout, const std::vector<int>& axes) {
  int64_t parts = 1;
  for (int axis : axes)
    if (layout.at(axis) == kPartial) parts *= mesh.size(axis);
  return parts;
}

// A value, and the op that makes it, as an index into the graph's ops.
struct MadeValue {
  ValueId id = kNoValue;
  size_t op = 0;
};

class TensorMeasurer {
 public:
  TensorMeasurer(Graph& graph, const TensorMeasures& measures)
      : graph_(graph), measures_(measures), layers_(block_count(graph)), behind_(graph.ops.size()) {}

  SmallGradients run() {
    if (measures_.statistics) {
      measure_layers();
      measure_attention();
      measure_rounding();
    }
    SmallGradients small;
    if (measures_.noise_scale) small = measure_small_gradients();
    place();
    return small;
  }

 private:
  // ---- where ops go

  // Behind op `at` of the graph, as part of it.
  ValueId add(Op op, size_t at, RunsFor runs_for = RunsFor::every_microbatch) {
    const Op& behind = graph_.ops[at];
    op.phase = behind.phase;
    op.block = behind.block;
    op.stage = behind.stage;
    op.where = behind.where;
    op.runs_for = runs_for;
    ValueId made = op.outputs[0];
    behind_[at].push_back(std::move(op));
    return made;
  }

  void place() {
    std::vector<Op> ops;
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      ops.push_back(std::move(graph_.ops[i]));
      for (Op& op : behind_[i]) ops.push_back(std::move(op));
    }
    graph_.ops = std::move(ops);
  }

  // ---- numbers

  struct Tally {
    std::string path;
    TallyOf counted = TallyOf::measured;
    ValueId of = kNoValue;  // the parameter
    std::optional<Measured> measured = {};
  };
  ValueId tally(const Tally& kept, ValueId number) {
    return graph_.add({.path = kept.path,
                       .kind = ValueKind::tally,
                       .dtype = graph_[number].dtype,
                       .shape = graph_[number].shape,
                       .layout = graph_[number].layout,
                       .of = kept.of,
                       .counted = kept.counted,
                       .measured = kept.measured});
  }

  // Over the microbatches of a step: added up, or the largest kept.
  ValueId keep(const OpDef& by, const Tally& kept, ValueId number, size_t at,
               RunsFor runs_for = RunsFor::every_microbatch) {
    Op op = make_op(graph_, by, {tally(kept, number), number}, {}, kept.path + ".next");
    graph_[op.outputs[0]].layout = graph_[number].layout;
    return add(std::move(op), at, runs_for);
  }

  // Of one layer; its numbers follow.
  struct MeasuredLayer {
    int layer;
    MeasuredTensor tensor;
    std::string path() const { return fmt::format("measured.{}.{}", layer, name_in(kMeasuredTensorNames, tensor)); }
    Measured numbers(MeasuredNumbers which) const { return {.layer = layer, .tensor = tensor, .numbers = which}; }
  };

  static Tally tally_of(const Measured& measured, const std::string& of) {
    return {.path = measured_path(measured, of), .measured = measured};
  }

  void keep_sums(const MeasuredLayer& of, Op op, const Layout& layout, size_t at) {
    Tally kept = tally_of(of.numbers(MeasuredNumbers::sums), graph_[op.inputs[0]].path);
    graph_[op.outputs[0]].layout = layout_of_number(layout, kPartial);
    keep(ops::accumulate, kept, add(std::move(op), at), at);
  }

  void keep_largest(const MeasuredLayer& of, Op op, const Layout& layout, size_t at) {
    Tally kept = tally_of(of.numbers(MeasuredNumbers::largest), graph_[op.inputs[0]].path);
    graph_[op.outputs[0]].layout = layout_of_number(layout, kPartialMax);
    keep(ops::keep_largest, kept, add(std::move(op), at), at);
  }

  // In which its underflow and overflow are counted.
  FloatRange range_of(const MadeValue& made) const {
    std::optional<FloatRange> range = float_range(measures_.format.value_or(graph_[made.id].dtype));
    BUG_IF(!range, "{} has no floating-point format", graph_[made.id].path);
    return *range;
  }

  void measure_sums(const MeasuredLayer& of, const MadeValue& made) {
    const Layout layout = graph_[made.id].layout;
    const FloatRange range = range_of(made);
    Attrs attrs{{"zero_below", range.zero_below}, {"largest", range.largest}};
    std::string path = fmt::format("{}.{}.statistics", of.path(), graph_[made.id].path);
    keep_sums(of, make_op(graph_, ops::tensor_statistics, {made.id}, attrs, path), layout, made.op);
  }

  void measure(const MeasuredLayer& of, const MadeValue& made) {
    measure_sums(of, made);
    const Layout layout = graph_[made.id].layout;
    std::string path = fmt::format("{}.{}.absmax", of.path(), graph_[made.id].path);
    keep_largest(of, make_op(graph_, ops::absmax, {made.id}, {}, path), layout, made.op);
  }

  // ---- layers

  // The output of the layer: of the values that ops outside of it read, the largest one, and the last of equally large
  // ones.
  std::optional<MadeValue> output_of(int layer) const {
    std::set<ValueId> outside;
    // In backward, too: it may be that the head reads the last layer there alone, where it makes the loss besides.
    for (const Op& op : graph_.ops)
      if (op.block != layer) outside.insert(op.inputs.begin(), op.inputs.end());
    std::optional<MadeValue> found;
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      const Op& op = graph_.ops[i];
      if (op.phase != Phase::forward || op.block != layer) continue;
      for (ValueId id : op.outputs)
        if (outside.contains(id) && float_range(graph_[id].dtype) &&
            (!found || graph_[id].shape.count() >= graph_[found->id].shape.count()))
          found = MadeValue{id, i};
    }
    return found;
  }

  // A value that ranks have only parts of a sum of is looked at behind the hop that adds them up.
  std::optional<MadeValue> whole(MadeValue made, Phase phase) const {
    for (size_t i = made.op + 1; i < graph_.ops.size() && is_partial(graph_[made.id].layout); ++i) {
      const Op& op = graph_.ops[i];
      if (op.phase == phase && op.def->layout_rule == LayoutRule::free && op.inputs[0] == made.id)
        made = {op.outputs[0], i};
    }
    return is_partial(graph_[made.id].layout) ? std::nullopt : std::optional(made);
  }

  // The last value that autodiff called so: contributions have the same name as their sum, and come before it.
  std::optional<MadeValue> gradient_of(ValueId value) const {
    const std::string path = "d." + graph_[value].path;
    std::optional<MadeValue> found;
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      if (graph_.ops[i].phase == Phase::forward || graph_.ops[i].phase == Phase::recompute) continue;
      for (ValueId id : graph_.ops[i].outputs)
        if (graph_[id].path == path && graph_[id].shape == graph_[value].shape) found = MadeValue{id, i};
    }
    return found ? whole(*found, graph_.ops[found->op].phase) : std::nullopt;
  }

  void measure_layers() {
    for (int layer = 0; layer < layers_; ++layer) {
      std::optional<MadeValue> output = output_of(layer);
      if (!output) continue;  // nothing of it is used
      if (auto made = whole(*output, Phase::forward)) measure({layer, MeasuredTensor::activation}, *made);
      if (auto made = gradient_of(output->id)) measure({layer, MeasuredTensor::activation_gradient}, *made);
    }
    measure_inner_gradients();
  }

  // Where it comes from, without what only changes its layout.
  ValueId before_hops(ValueId id, const std::vector<int>& made_by) const {
    for (int by = made_by[static_cast<size_t>(id)]; by >= 0; by = made_by[static_cast<size_t>(id)]) {
      const Op& op = graph_.ops[static_cast<size_t>(by)];
      if (op.def->layout_rule != LayoutRule::free) break;
      id = op.inputs[0];
    }
    return id;
  }

  // The values that the linears of a layer read. Each gradient of these is the output of a GEMM, in which a zero comes
  // from rounding; past an activation, zeros may have other causes.
  std::set<ValueId> read_by_linears(int layer, const std::vector<int>& made_by) const {
    std::set<ValueId> read;
    for (const Op& op : graph_.ops) {
      if (op.phase != Phase::forward || op.block != layer) continue;
      for (size_t i = 1; i < op.inputs.size(); ++i) {
        const Value& weight = graph_[before_hops(op.inputs[i], made_by)];
        if (weight.kind == ValueKind::parameter && weight.shape.rank() == 2)
          read.insert(before_hops(op.inputs[0], made_by));
      }
    }
    return read;
  }

  // Residual streams hand gradients on unchanged: what a layer loses to rounding, it loses inside. Formats with the
  // range of f32 lose nothing.
  void measure_inner_gradients() {
    const std::vector<int> made_by = producers(graph_);
    for (int layer = 0; layer < layers_; ++layer)
      for (ValueId value : read_by_linears(layer, made_by)) {
        std::optional<MadeValue> made = gradient_of(value);
        if (made && range_of(*made).zero_below > float_range(DType::bf16)->zero_below)
          measure_sums({layer, MeasuredTensor::inner_gradient}, *made);
      }
  }

  // ---- attention

  static Attrs logit_attrs(const Attrs& attention) {
    Attrs attrs;
    const auto& known = ops::attention_logits.attrs;
    for (const auto& [name, value] : attention.entries())
      if (std::find(known.begin(), known.end(), name) != known.end()) attrs.set(name, value);
    return attrs;
  }

  // Queries meet keys of all positions: along axes that split the sequence it is gathered.
  ValueId whole_sequence(ValueId id, size_t at) {
    Layout layout = graph_[id].layout;
    for (AxisState& state : layout.states)
      if (state.shards(1)) state = kReplicated;
    for (Op& hop : make_hops(graph_, id, layout, graph_[id].path + ".whole")) id = add(std::move(hop), at);
    return id;
  }

  void measure_attention() {
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      const Op op = graph_.ops[i];  // a copy: new values may move the lists
      if (!op.def->attends || op.phase != Phase::forward || op.block < 0 || op.block >= layers_) continue;
      std::vector<ValueId> inputs{whole_sequence(op.inputs[0], i)};
      for (ValueId id : op.inputs)
        if (graph_[id].dtype == DType::i32) inputs.push_back(whole_sequence(id, i));
      const Layout layout = graph_[inputs[0]].layout;
      keep_largest({op.block, MeasuredTensor::attention},
                   make_op(graph_, ops::attention_logits, inputs, logit_attrs(op.attrs), op.path + ".logits"), layout,
                   i);
    }
  }

  // ---- fp8

  void measure_rounding() {
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      const Op op = graph_.ops[i];
      bool rounds =
          !op.outputs.empty() && is_fp8(graph_[op.outputs[0]].dtype) && op.def->layout_rule == LayoutRule::rows;
      bool of_weight = op.runs_for == RunsFor::first_microbatch;
      if (!rounds || of_weight || op.phase == Phase::recompute || op.block < 0 || op.block >= layers_) continue;
      MeasuredTensor tensor =
          op.phase == Phase::forward ? MeasuredTensor::fp8_activation : MeasuredTensor::fp8_gradient;
      const Layout layout = graph_[op.inputs[0]].layout;
      if (is_partial(layout)) continue;
      keep_sums({op.block, tensor},
                make_op(graph_, ops::rounding_statistics, {op.inputs[0], op.outputs[0]}, {}, op.path + ".rounding"),
                layout, i);
    }
  }

  // ---- gradients of one microbatch

  std::set<ValueId> held_by_several() const {
    std::map<ValueId, std::set<int>> stages;
    for (const Op& op : graph_.ops)
      for (ValueId id : op.inputs)
        if (graph_[id].kind == ValueKind::parameter) stages[id].insert(op.stage);
    std::set<ValueId> several;
    for (const auto& [parameter, of] : stages)
      if (of.size() > 1) several.insert(parameter);
    return several;
  }

  // Ranks along data axes have the gradients of other samples; along others they are added up first.
  Layout by_samples(const Value& parameter, Layout layout) const {
    for (int axis = 0; axis < graph_.mesh.axis_count(); ++axis) {
      AxisState& state = layout.states[static_cast<size_t>(axis)];
      const auto& data = parameter.data_axes;
      if (state == kPartial && std::find(data.begin(), data.end(), axis) == data.end()) state = kInvariant;
    }
    return layout;
  }

  SmallGradients measure_small_gradients() {
    SmallGradients small;
    std::vector<int> made_by = producers(graph_);
    std::set<ValueId> several = held_by_several();
    std::optional<int64_t> parts;
    for (auto [parameter, gradient] : parameter_gradients(graph_)) {
      // Its gradient is a sum over stages, of which none has it before the update.
      if (several.contains(parameter)) continue;
      auto at = static_cast<size_t>(made_by[static_cast<size_t>(gradient)]);
      Layout layout = by_samples(graph_[parameter], graph_[gradient].layout);
      BUG_IF(parts && *parts != parts_along(graph_.mesh, layout, graph_[parameter].data_axes),
             "{}: gradients of microbatches that are cut in different parts", graph_[parameter].path);
      parts = parts_along(graph_.mesh, layout, graph_[parameter].data_axes);
      for (Op& hop : make_hops(graph_, gradient, layout, graph_[gradient].path + ".by_samples"))
        gradient = add(std::move(hop), at, RunsFor::first_microbatch);
      Op op = make_op(graph_, ops::sum_squares, {gradient}, {}, "noise." + graph_[parameter].path);
      // The parts of a sum count one by one here: they are gradients of different samples.
      graph_[op.outputs[0]].layout = layout_of_number(layout, kPartial);
      ValueId squares = add(std::move(op), at, RunsFor::first_microbatch);
      Tally kept{.path = "noise.tally." + graph_[parameter].path, .counted = TallyOf::small_gradients, .of = parameter};
      small.squares[parameter] = keep(ops::accumulate, kept, squares, at, RunsFor::first_microbatch);
    }
    return small;
  }

  Graph& graph_;
  const TensorMeasures& measures_;
  const int layers_;
  std::vector<std::vector<Op>> behind_;  // by op of the graph
};

}  // namespace

std::string measured_path(const Measured& measured, const std::string& of) {
  return fmt::format("measured.{}.{}.{}.{}", measured.layer, name_in(kMeasuredTensorNames, measured.tensor),
                     name_in(kMeasuredNumbersNames, measured.numbers), of);
}

std::vector<Measurement> measurements_in(const Program& program) {
  std::vector<Measurement> found;
  for (const Value& value : program.values)
    if (value.measured && value.buffer >= 0) found.push_back({.measured = *value.measured, .value = &value});
  return found;
}

int64_t small_gradient_parts(const Program& program) {
  for (const Value& tally : program.values) {
    if (tally.kind != ValueKind::tally || tally.counted != TallyOf::small_gradients) continue;
    auto gradient = std::ranges::find_if(
        program.values, [&](const Value& value) { return value.kind == ValueKind::gradient && value.of == tally.of; });
    BUG_IF(gradient == program.values.end(), "{} belongs to no gradient", tally.path);
    return parts_along(program.mesh, gradient->layout, program[tally.of].data_axes);
  }
  return 0;
}

SmallGradients measure_tensors(Graph& graph, const TensorMeasures& measures) {
  if (!measures.statistics && !measures.noise_scale) return {};
  return TensorMeasurer(graph, measures).run();
}

}  // namespace sextant
