#include "passes/infer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "ir/signature.h"
#include "mesh/redistribution.h"
#include "ops/ops.h"
#include "passes/hops.h"

namespace sextant {

namespace {

class Inference {
 public:
  explicit Inference(Graph& graph) : graph_(graph) {}

  void visit(Op op) {
    for (ValueId& id : op.inputs) id = current(id);
    if (op.def->layout_rule == LayoutRule::free) {
      if (!op.attrs.has("pin")) return ops.push_back(std::move(op));  // a hop that has its layouts already
      return visit_pin(op);
    }
    for (ValueId& id : op.inputs) id = in_use_layout(id, op);
    std::vector<Layout> wanted, made;
    for (ValueId id : op.inputs) wanted.push_back(graph_[id].layout);
    for (ValueId id : op.outputs) made.push_back(graph_[id].layout);
    const std::vector<LayoutRow>& rows = rows_of(op);
    std::vector<int64_t> bytes;
    for (ValueId id : op.inputs)
      bytes.push_back(local_shape(graph_[id].shape, graph_[id].layout, graph_.mesh).count() *
                      size_of(graph_[id].dtype));
    for (int axis = 0; axis < graph_.mesh.axis_count(); ++axis) {
      if (graph_.mesh.size(axis) == 1 || graph_.mesh.role(axis) == AxisRole::pipeline) continue;
      LayoutRow row = cheapest_row(op, rows, axis, bytes);
      for (size_t i = 0; i < wanted.size(); ++i) wanted[i].states[static_cast<size_t>(axis)] = row.inputs[i];
      for (size_t i = 0; i < made.size(); ++i) made[i].states[static_cast<size_t>(axis)] = row.outputs[i];
    }
    // A moved input is cut in the order of the first: sinks of heads that tensor ranks and then Ulysses share.
    for (size_t i = 1; i < wanted.size(); ++i)
      if (wanted[i].states != graph_[op.inputs[i]].layout.states && is_split_by_several(wanted[i]))
        wanted[i].order = wanted[0].order;
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

  // A weight that ZeRO stores in shards is used whole along the data axes: it is gathered, whatever else would cost
  // less.
  ValueId in_use_layout(ValueId id, const Op& user) {
    if (graph_[id].kind != ValueKind::parameter || user.phase != Phase::forward) return id;
    Layout use = graph_[id].layout;
    for (int axis : graph_[id].data_axes)
      if (use.at(axis).kind == StateKind::sharded) use.states[static_cast<size_t>(axis)] = kReplicated;
    return in_layout(id, use, user);
  }

  // A redistribution that nn/ wrote: the states it names are pins, the others stay. Where nothing changes it
  // disappears.
  void visit_pin(const Op& op) {
    ValueId from = op.inputs[0];
    Layout wanted = graph_[from].layout;
    Layout pins = parse_layout(op.attrs.text_or("pin", "I"), graph_.mesh);
    for (int axis : pins.order) {
      if (wanted.at(axis) == pins.at(axis)) continue;
      wanted.states[static_cast<size_t>(axis)] = pins.at(axis);
      // A later split of a dim divides the part that each rank has by then.
      if (pins.at(axis).kind == StateKind::sharded) wanted.order = with_axis_last(wanted, axis);
    }
    replaced_[op.outputs[0]] = in_layout(from, wanted, op);
  }

  // The same for all ops of a kind with operands of the same ranks: in a model, one per block and more.
  const std::vector<LayoutRow>& rows_of(const Op& op) {
    std::vector<int> in, out;
    for (ValueId id : op.inputs) in.push_back(graph_[id].shape.rank());
    for (ValueId id : op.outputs) out.push_back(graph_[id].shape.rank());
    auto [at, fresh] = rows_.try_emplace(RowsKey{op.def, in, out});
    if (fresh) at->second = layout_rows(*op.def, in, out);
    return at->second;
  }

  // `bytes`: what a rank holds of each input.
  LayoutRow cheapest_row(const Op& op, const std::vector<LayoutRow>& rows, int axis,
                         const std::vector<int64_t>& bytes) const {
    std::optional<LayoutRow> best;
    Moves least;
    for (const LayoutRow& plain : rows) {
      LayoutRow row = in_order(plain, order_for(op, plain, axis));
      std::optional<Moves> moves = moves_into(op, row, axis, bytes);
      if (moves && (!best || *moves < least)) best = row, least = *moves;
    }
    BUG_IF(!best, "{} ({}) has no row that its inputs can reach on axis {}", op.path, op.def->name,
           graph_.mesh.name(axis));
    return *best;
  }

  // A row splits in the order in which an input already is split along the row's dim.
  ShardOrder order_for(const Op& op, const LayoutRow& row, int axis) const {
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      AxisState state = graph_[op.inputs[i]].layout.at(axis);
      if (row.inputs[i].kind == StateKind::sharded && row.inputs[i].order != ShardOrder::blocks &&
          state.shards(row.inputs[i].dim))
        return state.order;
    }
    return ShardOrder::plain;
  }

  struct Moves {
    int64_t bytes = 0;
    int operands = 0;
    auto operator<=>(const Moves&) const = default;
  };

  // Bytes and operands to move so that the inputs are in the row's states; nullopt where no transfer exists.
  std::optional<Moves> moves_into(const Op& op, const LayoutRow& row, int axis,
                                  const std::vector<int64_t>& bytes) const {
    Moves total;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const Value& value = graph_[op.inputs[i]];
      auto step = transfer(value.layout.at(axis), row.inputs[i]);
      if (!step) return std::nullopt;
      int64_t local = bytes[i];
      bool split = value.layout.at(axis).kind == StateKind::sharded;
      total.operands += value.layout.at(axis) == row.inputs[i] ? 0 : 1;
      total.bytes += bytes_sent(*step, local, split ? local * graph_.mesh.size(axis) : local, graph_.mesh.size(axis));
    }
    return total;
  }

  ValueId in_layout(ValueId id, const Layout& layout, const Op& user) {
    if (graph_[id].layout == layout) return id;
    for (const Moved& moved : moved_[id])
      if (moved.stage == user.stage && moved.layout == layout) return moved.to;
    ValueId made = id;
    for (Op& hop : make_hops(graph_, id, layout, graph_[id].path + ".moved")) {
      hop.phase = user.phase;
      hop.block = user.block;
      hop.stage = user.stage;
      made = hop.outputs[0];
      ops.push_back(std::move(hop));
    }
    moved_[id].push_back({layout, user.stage, made});
    return made;
  }

  // A dim keeps its segments (q|k|v) wherever its letter goes, and the order in which axes split it.
  void inherit_segments(const Op& op) {
    const Signature& signature = signature_of(*op.def);
    std::vector<const Operand*> operands = signature.operands_of(ranks_of(types_of(graph_, op.inputs)));
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      Segments segments = graph_[op.inputs[i]].layout.segments;
      const std::string& letters = operands[i]->letters;
      if (!segments.any()) continue;
      for (size_t o = 0; o < op.outputs.size(); ++o) {
        const std::string& out = signature.outputs[o].letters;
        size_t dim = letters == "*" ? (out == "*" ? static_cast<size_t>(segments.dim) : std::string::npos)
                                    : out.find(letters[static_cast<size_t>(segments.dim)]);
        if (dim != std::string::npos)
          graph_[op.outputs[o]].layout.segments = Segments{static_cast<int>(dim), segments.extents};
      }
    }
    if (op.inputs.empty()) return;
    for (ValueId id : op.outputs)
      if (graph_[id].layout.order.empty()) graph_[id].layout.order = graph_[op.inputs[0]].layout.order;
    check_orders(op, signature, operands);
  }

  // Operands that share a dim which several axes split must be cut in the same order, or local work would mix pieces.
  void check_orders(const Op& op, const Signature& signature, const std::vector<const Operand*>& operands) const {
    auto several = [&](ValueId id) { return is_split_by_several(graph_[id].layout); };
    bool possible = std::any_of(op.inputs.begin(), op.inputs.end(), several) ||
                    std::any_of(op.outputs.begin(), op.outputs.end(), several);
    if (!possible) return;
    std::map<std::string, std::vector<int>> orders;
    auto visit = [&](const Value& value, const std::string& letters) {
      for (int dim = 0; dim < value.shape.rank(); ++dim) {
        std::vector<int> axes = axes_of_dim(value.layout, dim);
        std::erase_if(axes, [&](int axis) { return graph_.mesh.size(axis) == 1; });
        std::string key = letters == "*" ? fmt::format("*{}", dim) : std::string(1, letters[static_cast<size_t>(dim)]);
        auto [at, fresh] = orders.emplace(key, axes);
        BUG_IF(axes.size() > 1 && !fresh && at->second != axes, "{} ({}): operands cut dim {} in different orders",
               op.path, op.def->name, key);
      }
    };
    for (size_t i = 0; i < op.inputs.size(); ++i) visit(graph_[op.inputs[i]], operands[i]->letters);
    for (size_t o = 0; o < op.outputs.size(); ++o) visit(graph_[op.outputs[o]], signature.outputs[o].letters);
  }

  bool is_split_by_several(const Layout& layout) const {
    int axes = 0;
    for (int axis = 0; axis < graph_.mesh.axis_count(); ++axis)
      axes += graph_.mesh.size(axis) > 1 && layout.at(axis).kind == StateKind::sharded ? 1 : 0;
    return axes > 1;
  }

  Graph& graph_;
  std::map<ValueId, ValueId> replaced_;

  // One redistribution per value and target, on each stage that needs it.
  struct Moved {
    Layout layout;
    int stage;
    ValueId to;
  };
  std::map<ValueId, std::vector<Moved>> moved_;

  using RowsKey = std::tuple<const OpDef*, std::vector<int>, std::vector<int>>;
  std::map<RowsKey, std::vector<LayoutRow>> rows_;
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
