#include "passes/recompute.h"

#include <algorithm>
#include <map>

#include "ir/lane.h"
#include "ops/latent_heads.h"
#include "passes/hops.h"

namespace sextant {

namespace {

// Below this many flops per byte moved an op is limited by memory on any machine we know, so doing it twice is cheap.
constexpr double kCheapFlopsPerByte = 4;

bool is_backward(const Op& op) {
  return op.phase == Phase::input_gradient || op.phase == Phase::weight_gradient;
}

bool is_cheap(const Graph& graph, const Op& op) {
  Cost cost = cost_of(graph, op);
  return cost.flops.n < kCheapFlopsPerByte * static_cast<double>(cost.read.n + cost.written.n);
}

class Recomputation {
 public:
  Recomputation(Graph& graph, RecomputeMode mode) : graph_(graph), made_by_(producers(graph)) {
    forward_ = graph.ops;
    choose(mode);
  }

  std::vector<Op> run() {
    for (Op& op : graph_.ops) {
      if (is_backward(op))
        for (ValueId& id : op.inputs) id = again(id, op.block, op.stage);
      out_.push_back(std::move(op));
    }
    return std::move(out_);
  }

 private:
  void choose(RecomputeMode mode) {
    std::vector<bool> saved(graph_.values.size(), false);
    for (const Op& op : forward_)
      if (is_backward(op))
        for (ValueId id : op.inputs) saved[static_cast<size_t>(id)] = true;
    chosen_.resize(forward_.size(), false);
    std::vector<bool> makes_heads(forward_.size(), false);
    if (mode == RecomputeMode::latent) mark_latent_heads(makes_heads);
    for (size_t i = 0; i < forward_.size(); ++i) {
      const Op& op = forward_[i];
      // Values made once for all microbatches are still there, and a maximum over ranks is one number, which is kept
      // rather than communicated again.
      bool possible = op.phase == Phase::forward && op.def->recompute != Recompute::never && !once_per_step(op) &&
                      !is_hop(op, Transfer::all_reduce_max);
      bool follows = op.def->recompute == Recompute::with_input && is_chosen(op.inputs[0]);
      if (possible && (follows || is_hop(op, Transfer::all_gather))) {
        chosen_[i] = true;
        continue;
      }
      possible = possible && op.block >= 0 && mode != RecomputeMode::none;
      bool whole = mode == RecomputeMode::full || mode == RecomputeMode::alternate;
      if (mode == RecomputeMode::alternate) possible = possible && op.block % 2 == 0;
      if (mode == RecomputeMode::norms) possible = possible && op.def->recompute == Recompute::first;
      auto is_at_hand = [&](ValueId id) { return at_hand(id, saved); };
      if (!whole)
        possible = possible && (makes_heads[i] ||
                                (is_cheap(graph_, op) && std::all_of(op.inputs.begin(), op.inputs.end(), is_at_hand)));
      chosen_[i] = possible;
    }
  }

  // The ops that make the heads of latent attention, and the linears in front of them. What they read, narrow rows, is
  // saved where it is not computed again itself.
  void mark_latent_heads(std::vector<bool>& marked) const {
    for (size_t i = 0; i < forward_.size(); ++i) {
      const Op& op = forward_[i];
      if (!makes_latent_heads(*op.def) || op.phase != Phase::forward) continue;
      marked[i] = true;
      for (ValueId id : {op.inputs[0], op.inputs[1]}) {
        int producer = made_by_[static_cast<size_t>(id)];
        while (producer >= 0 && forward_[static_cast<size_t>(producer)].def->layout_rule == LayoutRule::free)
          producer = made_by_[static_cast<size_t>(forward_[static_cast<size_t>(producer)].inputs[0])];
        if (producer >= 0) marked[static_cast<size_t>(producer)] = true;
      }
    }
  }

  bool is_chosen(ValueId id) const {
    int producer = made_by_[static_cast<size_t>(id)];
    return producer >= 0 && chosen_[static_cast<size_t>(producer)];
  }

  // Whether backward finds the value without saving anything more: given from outside, saved, or computed again.
  bool at_hand(ValueId id, const std::vector<bool>& saved) const {
    return made_by_[static_cast<size_t>(id)] < 0 || saved[static_cast<size_t>(id)] || is_chosen(id);
  }

  // The value to read in backward of `block`: its copy computed again, or itself.
  ValueId again(ValueId id, int block, int stage) {
    int producer = made_by_[static_cast<size_t>(id)];
    if (producer < 0 || !chosen_[static_cast<size_t>(producer)]) return id;
    const Op& made_by = forward_[static_cast<size_t>(producer)];
    if (made_by.block != block || made_by.stage != stage) return id;  // what enters a block is saved
    if (auto at = copies_.find(id); at != copies_.end()) return at->second;
    Op copy = forward_[static_cast<size_t>(producer)];
    for (ValueId& input : copy.inputs) input = again(input, block, stage);
    copy.phase = Phase::recompute;
    for (ValueId& output : copy.outputs) {
      Value value = graph_[output];
      value.path += ".again";
      value.kind = ValueKind::activation;
      output = copies_[output] = graph_.add(std::move(value));
    }
    out_.push_back(std::move(copy));
    return copies_[id];
  }

  Graph& graph_;
  std::vector<int> made_by_;
  std::vector<Op> forward_;  // the ops as they were
  std::vector<bool> chosen_;
  std::map<ValueId, ValueId> copies_;
  std::vector<Op> out_;
};

}  // namespace

void recompute(Graph& graph, RecomputeMode mode) {
  graph.ops = Recomputation(graph, mode).run();
}

}  // namespace sextant
