// Builder: writes a Graph op by op. It knows where in the model it stands (the path of scopes and the block), and which
// mesh axes split the data, so that models name only shapes and mathematics.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/plan.h"
#include "ops/ops.h"

namespace sextant {

// How tensor-parallel ranks hold a weight. Data axes need no word: a weight is R there.
enum class TensorSplit : uint8_t {
  whole,    // every rank holds all of it
  outputs,  // split along dim 0
  inputs,   // split along dim 1
  copies,   // every rank holds all of it, and uses a part of its own
};

// Whether a weight belongs to the layer, or to experts, which lie on the mesh in their own way (ExpertRole).
enum class WeightOf : uint8_t { layer, experts };

struct ParameterSpec {
  std::string name;  // "qkv.weight", below the current scope
  GlobalShape shape;
  Init init;
  TensorSplit split = TensorSplit::whole;
  std::vector<int64_t> segments = {};        // of dim 0: q|k|v, gate|up: each is split by itself
  std::vector<int64_t> packed = {};          // rows of the tensors packed in it, where they are no segments
  StoredIn stored = {};                      // "qkv.weight", below the current scope
  WeightOf of = WeightOf::layer;             // of experts: one below the other, dim 0 is distributed to ranks
  std::optional<double> balance_speed = {};  // not trained: Value::balance_speed. Wide, and whole on every rank
};

class Builder {
 public:
  Builder(std::string name, Mesh mesh, const Parallel& parallel, DType dtype = DType::f32);

  // Where the following ops stand: scopes nest, and end with the returned object.
  class Scope {
   public:
    Scope(Builder& builder, std::string_view name, int block);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Builder& builder_;
    std::string outer_path_;
    int outer_block_;
  };
  [[nodiscard]] Scope scope(std::string_view name) { return {*this, name, block_}; }
  [[nodiscard]] Scope block(std::string_view name, int index) { return {*this, name, index}; }
  [[nodiscard]] Scope outside_of_blocks(std::string_view name) { return {*this, name, -1}; }

  ValueId parameter(const ParameterSpec& spec);
  // A value given each step. Its first dim is the batch, its second the sequence, where it has them.
  ValueId feed(std::string path, DType dtype, GlobalShape shape);
  // A number given each step that is the gradient of one which all ranks compute alike.
  ValueId feed_for_all(std::string path, DType dtype);
  // Keys or values kept between steps, [batch, heads, positions, head size]: each rank has its sequences and its heads.
  ValueId cache(std::string path, GlobalShape shape);

  // One op; returns its first output. `name` goes below the current scope.
  ValueId op(const OpDef& def, std::string_view name, std::vector<ValueId> inputs, Attrs attrs = {},
             std::source_location where = std::source_location::current());
  // The residual stream's layout: split like the data; on tensor-parallel ranks all of it, or a part of the sequence
  // each.
  ValueId residual(ValueId value);
  // The whole of it on every tensor-parallel rank, each of which does other work with it.
  ValueId gathered(ValueId value);
  // For experts: what ranks hold that share experts or divide them, is split along the sequence; what ranks hold that
  // have parts of the same experts, is whole.
  ValueId tokens_for_experts(ValueId value);
  // Rows that stand in groups by dims 0 and 1, one group or more per rank, go to the ranks that hold their experts, and
  // are split along dim 2; and back.
  ValueId to_experts(ValueId rows);
  ValueId from_experts(ValueId rows);
  // Tokens, or what belongs to them, of all ranks among which experts are divided, on each of them.
  ValueId gathered_for_experts(ValueId value);
  // For attention by all-to-all: each context-parallel rank gets whole sequences of some heads, and back.
  ValueId whole_sequences(ValueId value);
  ValueId split_sequences(ValueId value);
  // The value on every rank that has a part of a sequence, for decisions about whole sequences.
  ValueId on_whole_sequences(ValueId value);
  // The sum over all ranks that have a part of it, on each of them.
  ValueId summed(ValueId value);
  // The same over the ranks that share sequences.
  ValueId summed_over_sequence(ValueId value);
  // In training, the value is added up over the microbatches of a step, and the update of that parameter reads the sum.
  void tally(ValueId value, ValueId parameter, TallyOf counted = TallyOf::load) {
    graph_[value].of = parameter;
    graph_[value].counted = counted;
  }
  void set_segments(ValueId value, int dim, std::vector<int64_t> extents) {
    graph_[value].layout.segments = {dim, std::move(extents)};
  }
  void fetch(ValueId value, std::string path);  // hand the value out under this path

  ValueId output(int i) const { return graph_.ops.back().outputs[static_cast<size_t>(i)]; }  // of the last op
  const GlobalShape& shape(ValueId id) const { return graph_[id].shape; }
  DType dtype() const { return dtype_; }
  const Parallel& parallel() const { return parallel_; }
  int ranks(AxisRole role) const { return graph_.mesh.ranks(role); }
  int ranks(ExpertRole role) const { return graph_.mesh.ranks(role); }
  // Groups of tokens along dims 0 and 1: each rank's tokens are one, or as many as zigzag order has pieces.
  std::pair<int64_t, int64_t> token_groups() const;
  // "PREFIX.where.we.stand.NAME": paths of states.
  std::string path(std::string_view prefix, std::string_view name) const {
    return std::string(prefix) + "." + below(name);
  }

  Graph take() { return std::move(graph_); }

 private:
  std::string below(std::string_view name) const {
    return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
  }
  void set_states(Layout& layout, AxisRole role, AxisState state) const;  // on all axes of the role
  AxisState sequence_state() const;                                       // of dim 1 on context axes
  ValueId pin(ValueId value, std::string_view name, const std::vector<std::pair<AxisRole, AxisState>>& states);
  ValueId pin_axes(ValueId value, std::string_view name, const std::vector<std::pair<int, AxisState>>& states);
  // How dims 0 and 1 of a value of tokens are split along an axis.
  AxisState token_state(int axis) const;

  Graph graph_;
  Parallel parallel_;
  DType dtype_;
  std::string path_;
  int block_ = -1;
};

}  // namespace sextant
