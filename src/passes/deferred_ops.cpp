#include "passes/deferred_ops.h"

#include <algorithm>

#include "ops/latent_heads.h"

namespace sextant {

namespace {

// The ops of weight gradients that `cheap` leaves in backward.
class InBackward {
 public:
  explicit InBackward(const Graph& graph)
      : heads_(graph.values.size(), false), gradients_(graph.values.size(), false) {}

  // Asked of every op, in order.
  bool has(const Op& op) {
    bool moved = op.def->layout_rule == LayoutRule::free && any(op.inputs, heads_);
    if (makes_gradients_of_latent_heads(*op.def) || moved) mark(op.outputs, heads_);
    if (op.phase != Phase::weight_gradient) return false;
    // Ops that read a gradient made in backward stay in backward too.
    bool there = op.attrs.has("experts") || any(op.inputs, heads_) || any(op.inputs, gradients_);
    if (there) mark(op.outputs, gradients_);
    return there;
  }

 private:
  using Marks = std::vector<bool>;  // by value
  static bool any(const std::vector<ValueId>& ids, const Marks& marks) {
    return std::any_of(ids.begin(), ids.end(), [&](ValueId id) { return marks[static_cast<size_t>(id)]; });
  }
  static void mark(const std::vector<ValueId>& ids, Marks& marks) {
    for (ValueId id : ids) marks[static_cast<size_t>(id)] = true;
  }

  Marks heads_;      // gradients of latent attention's heads
  Marks gradients_;  // of weights
};

}  // namespace

std::vector<bool> deferred_ops(const Graph& graph, DeferredGradients deferred) {
  InBackward in_backward(graph);
  std::vector<bool> chosen;
  for (const Op& op : graph.ops) {
    bool stays = deferred == DeferredGradients::cheap && in_backward.has(op);
    chosen.push_back(op.phase == Phase::weight_gradient && !stays);
  }
  return chosen;
}

}  // namespace sextant
