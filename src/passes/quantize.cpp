#include "passes/quantize.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "ops/ops.h"
#include "passes/hops.h"
#include "passes/kept_wide.h"

namespace sextant {

namespace {

// The fp8 units of a GPU require every size of a GEMM to be a multiple of it.
constexpr int64_t kUnitWidth = 16;

// Where dim d of a value stands in its transpose: [b s i] becomes [i b s], [o i] becomes [i o].
int transposed_dim(int dim, int rank) {
  return (dim + 1) % rank;
}

Layout transposed_layout(Layout layout, int rank) {
  for (AxisState& state : layout.states)
    if (state.kind == StateKind::sharded) state.dim = transposed_dim(state.dim, rank);
  if (layout.segments.any()) layout.segments.dim = transposed_dim(layout.segments.dim, rank);
  return layout;
}

// Of a number for the whole value, which every rank has that holds some of it.
Layout scalar_layout(Layout layout, AxisState of_shards) {
  for (AxisState& state : layout.states)
    if (state.kind == StateKind::sharded) state = of_shards;
  return {.states = std::move(layout.states), .order = {}, .segments = {}};
}

// Of the scales of tiles along the last dim, or of the blocks of a matrix: split as the value is, in units of tiles.
Layout tile_layout(Layout layout, int rank, int64_t tile) {
  if (rank > 2 && layout.segments.dim != rank - 1) return layout;
  bool whole = std::ranges::all_of(layout.segments.extents, [&](int64_t extent) { return extent % tile == 0; });
  if (whole)
    for (int64_t& extent : layout.segments.extents) extent /= tile;
  else
    layout.segments = {};  // nothing splits that dim
  return layout;
}

class Quantizer {
 public:
  Quantizer(Graph& graph, const Quantization& what)
      : graph_(graph),
        recipe_(*what.recipe),
        linears_{.blocks = blocks_of(graph), .skip = what.skip, .unit = kUnitWidth},
        made_by_(producers(graph)),
        wide_ops_(graph.ops) {
    for (const Op& op : wide_ops_) find_transposed(op);
  }

  std::vector<Op> run() {
    for (const Op& op : wide_ops_) {
      const Fp8Product* product = recipe_.product_of(op);
      if (!product)
        ops_.push_back(op);
      else if (std::string why = reason_to_stay(op); why.empty())
        ops_.push_back(narrow(op, *product));
      else
        ops_.push_back(wide(op, std::move(why)));
    }
    ahead_.insert(ahead_.end(), std::make_move_iterator(ops_.begin()), std::make_move_iterator(ops_.end()));
    return std::move(ahead_);
  }

 private:
  // A value in fp8 and its scales, and the transpose of both.
  struct Copies {
    ValueId codes = kNoValue, scales = kNoValue;
    ValueId transposed = kNoValue, transposed_scales = kNoValue;
  };

  static Op wide(Op op, std::string why) {
    op.attrs.set("kept_wide", std::move(why));
    return op;
  }

  // Why the op is not done in fp8; empty where it is.
  std::string reason_to_stay(const Op& op) const {
    if (std::string why = reason_to_keep_wide(graph_, op, linears_); !why.empty()) return why;
    for (size_t side : {size_t{0}, size_t{1}}) {
      if (recipe_.tile == 0) continue;
      const Value& value = graph_[op.inputs[side]];
      LocalShape local = local_shape(value.shape, value.layout, graph_.mesh);
      // Sequences with tiles of their own are summed over one by one.
      if (local.rank() == 3 && local[1] % kUnitWidth != 0) return "a size is no multiple of 16";
      if (!has_whole_tiles(value.shape, value.layout)) return "the mesh cuts tiles";
    }
    return {};
  }

  // Along every dim that is split, what a rank has of each part of it is made of whole tiles. Sequences are not joined
  // in a tile, so how the batch is split does not matter.
  bool has_whole_tiles(const GlobalShape& shape, const Layout& layout) const {
    int first = shape.rank() == 3 ? 1 : 0;
    for (int dim = first; dim < shape.rank(); ++dim) {
      int64_t pieces = 1;
      for (int axis : axes_of_dim(layout, dim)) {
        if (graph_.mesh.size(axis) == 1) continue;
        if (layout.at(axis).order == ShardOrder::striped) return false;  // neighbours are on other ranks
        pieces *= graph_.mesh.size(axis) * (layout.at(axis).order == ShardOrder::zigzag ? 2 : 1);
      }
      if (pieces == 1) continue;
      std::vector<int64_t> parts{shape[dim]};
      if (layout.segments.dim == dim) parts = layout.segments.extents;
      for (int64_t part : parts)
        if (part % (pieces * recipe_.tile) != 0) return false;
    }
    return true;
  }

  // The stored weight that a value is gathered of, or the value itself.
  ValueId stored(ValueId id) const {
    ValueId from = id;
    while (made_by_[static_cast<size_t>(from)] >= 0) {
      const Op& op = wide_ops_[static_cast<size_t>(made_by_[static_cast<size_t>(from)])];
      if (!is_hop(op, Transfer::all_gather) && !is_hop(op, Transfer::nothing)) return id;
      from = op.inputs[0];
    }
    const Value& value = graph_[from];
    bool quantised_there =
        value.kind == ValueKind::parameter && (recipe_.tile == 0 || has_whole_tiles(value.shape, value.layout));
    return quantised_there ? from : id;
  }

  using Source = std::pair<ValueId, int>;  // a value, and the stage that quantises it
  Source source_of(const Op& op, const Fp8Product& product, size_t side) const {
    ValueId id = op.inputs[side];
    return {product.sides[side].operand == Fp8Operand::weight ? stored(id) : id, op.stage};
  }

  void find_transposed(const Op& op) {
    const Fp8Product* product = recipe_.product_of(op);
    if (!product || !reason_to_stay(op).empty()) return;
    for (size_t side : {size_t{0}, size_t{1}})
      if (product->sides[side].transposed) transposed_[source_of(op, *product, side)] = true;
  }

  Op narrow(const Op& op, const Fp8Product& product) {
    std::vector<ValueId> inputs;
    for (size_t side : {size_t{0}, size_t{1}}) {
      const Copies& copies = quantized(op, product, side);
      bool transposed = product.sides[side].transposed;
      Layout use = graph_[op.inputs[side]].layout;
      int rank = graph_[op.inputs[side]].shape.rank();
      if (transposed) use = transposed_layout(std::move(use), rank);
      inputs.push_back(in_layout(transposed ? copies.transposed : copies.codes, use, op));
      inputs.push_back(
          in_layout(transposed ? copies.transposed_scales : copies.scales, layout_of_scales(use, rank), op));
    }
    inputs.insert(inputs.end(), op.inputs.begin() + 2, op.inputs.end());
    Op made = op;
    made.def = product.narrow;
    made.inputs = std::move(inputs);
    made.attrs.set("to", std::string(name_of(graph_[op.outputs[0]].dtype)));
    if (recipe_.tile > 0) made.attrs.set("tile", recipe_.tile);
    return made;
  }

  ValueId in_layout(ValueId id, const Layout& layout, const Op& user) {
    auto [at, fresh] = moved_.try_emplace({id, user.stage}, id);
    if (!fresh) return at->second;
    for (Op& hop : make_hops(graph_, id, layout, graph_[id].path + ".moved")) {
      at->second = hop.outputs[0];
      ops_.push_back(placed(std::move(hop), user));
    }
    return at->second;
  }

  static Op placed(Op op, const Op& user) {
    op.phase = user.phase;
    op.block = user.block;
    op.stage = user.stage;
    op.where = user.where;
    return op;
  }

  const Copies& quantized(const Op& op, const Fp8Product& product, size_t side) {
    Source source = source_of(op, product, side);
    auto [at, fresh] = copies_.try_emplace(source);
    if (!fresh) return at->second;
    ValueId id = source.first;
    const Fp8Quantizer& quantizer = recipe_.of(product.sides[side].operand);
    bool once = graph_[id].kind == ValueKind::parameter;
    // A gather may be started before the block that uses its result begins; its operand must be there by then.
    bool ahead = once && graph_[id].layout != graph_[op.inputs[side]].layout;
    auto add = [&](Op made) {
      made = placed(std::move(made), op);
      made.phase = once ? Phase::forward : op.phase;
      if (ahead) made.block = -1;
      if (once) made.runs_for = RunsFor::first_microbatch;
      (ahead ? ahead_ : ops_).push_back(std::move(made));
    };
    std::string path = graph_[id].path;
    std::vector<ValueId> inputs{id};
    if (quantizer.amax) {
      Op amax = make_op(graph_, *quantizer.amax, {id}, {}, path + ".amax");
      ValueId largest = amax.outputs[0];
      graph_[largest].layout = scalar_layout(graph_[id].layout, kPartialMax);
      add(std::move(amax));
      for (Op& hop : make_hops(graph_, largest, scalar_layout(graph_[id].layout, kReplicated), path + ".amax.max")) {
        largest = hop.outputs[0];
        add(std::move(hop));
      }
      inputs.push_back(largest);
    }
    Attrs attrs{{"dtype", std::string(name_of(quantizer.dtype))}};
    bool transposed = transposed_.contains(source);
    if (transposed) attrs.set("transposed", int64_t{1});
    if (recipe_.tile > 0) attrs.set("tile", recipe_.tile);
    Op made = make_op(graph_, *quantizer.quantize, inputs, attrs, path + ".fp8");
    Copies& copies = at->second;
    copies.codes = made.outputs[0], copies.scales = made.outputs[1];
    if (transposed)
      copies.transposed = made.outputs[2], copies.transposed_scales = made.outputs[recipe_.tile > 0 ? 3 : 1];
    set_layouts(copies, graph_[id].layout, graph_[id].shape.rank());
    if (once)
      for (ValueId output : made.outputs) graph_[output].kind = ValueKind::quantized;
    add(std::move(made));
    return copies;
  }

  void set_layouts(const Copies& copies, const Layout& layout, int rank) {
    graph_[copies.codes].layout = layout;
    graph_[copies.scales].layout = layout_of_scales(layout, rank);
    if (copies.transposed == kNoValue) return;
    graph_[copies.transposed].layout = transposed_layout(layout, rank);
    graph_[copies.transposed_scales].layout = layout_of_scales(graph_[copies.transposed].layout, rank);
  }

  // Of the scales of a value with this layout.
  Layout layout_of_scales(const Layout& layout, int rank) const {
    return recipe_.tile > 0 ? tile_layout(layout, rank, recipe_.tile) : scalar_layout(layout, kReplicated);
  }

  Graph& graph_;
  const Fp8Recipe& recipe_;
  NarrowedLinears linears_;
  std::vector<int> made_by_;
  std::vector<Op> wide_ops_;
  std::vector<Op> ahead_, ops_;
  std::map<Source, bool> transposed_;  // those whose transpose is read
  std::map<Source, Copies> copies_;
  std::map<Source, ValueId> moved_;  // copies in the layout in which they are used
};

}  // namespace

void quantize(Graph& graph, const Quantization& what) {
  if (what.recipe) graph.ops = Quantizer(graph, what).run();
}

}  // namespace sextant
