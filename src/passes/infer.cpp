#include "passes/infer.h"

#include <map>
#include <optional>

#include "base/error.h"
#include "ir/signature.h"
#include "mesh/redistribution.h"
#include "ops/ops.h"

namespace sextant {

namespace {

class Inference {
 public:
  explicit Inference(Graph& graph) : graph_(graph) {}

  void visit(Op op) {
    if (op.def->layout_rule == LayoutRule::free) return visit_pin(std::move(op));
    for (ValueId& id : op.inputs) id = current(id);
    std::vector<Layout> wanted, made;
    for (ValueId id : op.inputs) wanted.push_back(graph_[id].layout);
    for (ValueId id : op.outputs) made.push_back(graph_[id].layout);
    std::vector<LayoutRow> rows = rows_of(op);
    for (int axis = 0; axis < graph_.mesh.axis_count(); ++axis) {
      if (graph_.mesh.size(axis) == 1) continue;
      const LayoutRow& row = cheapest_row(op, rows, axis);
      for (size_t i = 0; i < wanted.size(); ++i) wanted[i].states[static_cast<size_t>(axis)] = row.inputs[i];
      for (size_t i = 0; i < made.size(); ++i) made[i].states[static_cast<size_t>(axis)] = row.outputs[i];
    }
    for (size_t i = 0; i < wanted.size(); ++i) op.inputs[i] = in_layout(op.inputs[i], wanted[i], op);
    for (size_t i = 0; i < made.size(); ++i) graph_[op.outputs[i]].layout = made[i];
    inherit_segments(op);
    ops.push_back(std::move(op));
  }

  std::vector<Op> ops;

 private:
  ValueId current(ValueId id) const {
    auto at = replaced_.find(id);
    return at == replaced_.end() ? id : at->second;
  }

  // A redistribution that nn/ wrote: its output's layout is a pin. Where nothing changes it disappears.
  void visit_pin(Op op) {
    ValueId from = current(op.inputs[0]), to = op.outputs[0];
    Layout pinned = graph_[to].layout;
    pinned.segments = graph_[from].layout.segments;
    for (int axis = 0; axis < graph_.mesh.axis_count(); ++axis)
      if (graph_.mesh.size(axis) == 1) pinned.states[static_cast<size_t>(axis)] = graph_[from].layout.at(axis);
    if (pinned == graph_[from].layout) {
      replaced_[to] = from;
      return;
    }
    graph_[to].layout = pinned;
    op.inputs[0] = from;
    ops.push_back(std::move(op));
  }

  std::vector<LayoutRow> rows_of(const Op& op) const {
    std::vector<int> in, out;
    for (ValueId id : op.inputs) in.push_back(graph_[id].shape.rank());
    for (ValueId id : op.outputs) out.push_back(graph_[id].shape.rank());
    return layout_rows(*op.def, in, out);
  }

  const LayoutRow& cheapest_row(const Op& op, const std::vector<LayoutRow>& rows, int axis) const {
    const LayoutRow* best = nullptr;
    Moves least;
    for (const LayoutRow& row : rows) {
      std::optional<Moves> moves = moves_into(op, row, axis);
      if (moves && (!best || *moves < least)) best = &row, least = *moves;
    }
    BUG_IF(!best, "{} ({}) has no row that its inputs can reach on axis {}", op.path, op.def->name,
           graph_.mesh.axes[static_cast<size_t>(axis)].name);
    return *best;
  }

  struct Moves {
    int64_t bytes = 0;
    int operands = 0;
    auto operator<=>(const Moves&) const = default;
  };

  // What it takes to bring the inputs into the row's states; nullopt where no transfer does.
  std::optional<Moves> moves_into(const Op& op, const LayoutRow& row, int axis) const {
    Moves total;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const Value& value = graph_[op.inputs[i]];
      auto step = transfer(value.layout.at(axis), row.inputs[i]);
      if (!step) return std::nullopt;
      int64_t local = local_shape(value.shape, value.layout, graph_.mesh).count() * size_of(value.dtype);
      bool split = value.layout.at(axis).kind == StateKind::sharded;
      total.operands += value.layout.at(axis) == row.inputs[i] ? 0 : 1;
      total.bytes += bytes_sent(*step, local, split ? local * graph_.mesh.size(axis) : local, graph_.mesh.size(axis));
    }
    return total;
  }

  ValueId in_layout(ValueId id, const Layout& layout, const Op& user) {
    if (graph_[id].layout == layout) return id;
    for (const auto& [target, made] : redistributed_[id])
      if (target == layout) return made;
    Op op = make_op(graph_, ops::redistribute, {id}, {}, graph_[id].path + ".moved");
    op.phase = user.phase;
    op.block = user.block;
    ValueId made = op.outputs[0];
    graph_[made].layout = layout;
    ops.push_back(std::move(op));
    redistributed_[id].emplace_back(layout, made);
    return made;
  }

  // A dim keeps its segments (q|k|v) wherever its letter goes.
  void inherit_segments(const Op& op) {
    Signature signature = parse_signature(op.def->operands);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const Segments& segments = graph_[op.inputs[i]].layout.segments;
      const std::string& letters = signature.input(static_cast<int>(i)).letters;
      if (!segments.any() || letters == "*") continue;
      char letter = letters[static_cast<size_t>(segments.dim)];
      for (size_t o = 0; o < op.outputs.size(); ++o) {
        size_t dim = signature.outputs[o].letters.find(letter);
        if (dim != std::string::npos)
          graph_[op.outputs[o]].layout.segments = Segments{static_cast<int>(dim), segments.extents};
      }
    }
  }

  Graph& graph_;
  std::map<ValueId, ValueId> replaced_;
  std::map<ValueId, std::vector<std::pair<Layout, ValueId>>> redistributed_;
};

}  // namespace

void infer(Graph& graph, Phase phase) {
  Inference inference(graph);
  std::vector<Op> ops = std::move(graph.ops);
  for (Op& op : ops) {
    if (op.phase == phase)
      inference.visit(std::move(op));
    else
      inference.ops.push_back(std::move(op));
  }
  graph.ops = std::move(inference.ops);
}

}  // namespace sextant
