// DualPipe (DeepSeek-AI 2024) and its half that folds back onto itself, DualPipeV: a rank holds two chunks, and in the
// steady part runs the forward of one beside the backward of the other. What is left idle is the filling and draining
// of the pipeline, less the weight gradients that are kept for it.
//
// DualPipe: two copies of the model run through the ranks in opposite directions; phase 0 is the one that enters nearer
// to a rank. DualPipeV: one model of twice as many stages, folded; phase 0 is the way out, phase 1 the way back. Both
// are the same eight steps over the ranks from this one to the innermost, where the directions meet or the V turns.
#include <algorithm>
#include <array>
#include <vector>

#include "schedule/orders.h"

namespace sextant {

namespace {

// The actions of one rank, phase by phase; each kind counts its own microbatches.
class DualWriter {
 public:
  struct Phase {
    int chunk = 0;
    int first_microbatch = 0;
  };
  explicit DualWriter(const std::array<Phase, 2>& phases) : phases_(phases) {
    for (auto& kind : next_)
      for (size_t phase = 0; phase < 2; ++phase) kind[phase] = phases[phase].first_microbatch;
  }

  void forward(size_t phase) { put(RegionKind::forward, phase); }
  void backward(size_t phase) {
    put(RegionKind::backward, phase).with_next = true;
    put(RegionKind::weight, phase);
  }
  void pair(size_t forward_phase, size_t backward_phase) {
    put(RegionKind::forward, forward_phase).with_next = true;
    backward(backward_phase);
  }
  // The gradient of the input alone; its weight gradients wait.
  void input_gradient(size_t phase) {
    put(RegionKind::backward, phase);
    waiting_.push_back(phase);
  }
  // The weight gradients that wait longest.
  void weight() {
    put(RegionKind::weight, waiting_.front());
    waiting_.erase(waiting_.begin());
  }

  Order order() && { return std::move(order_); }

 private:
  Action& put(RegionKind kind, size_t phase) {
    int microbatch = next_[static_cast<size_t>(kind)][phase]++;
    return order_.emplace_back(Action{kind, phases_[phase].chunk, microbatch});
  }

  std::array<Phase, 2> phases_;
  std::array<std::array<int, 2>, 3> next_{};
  std::vector<size_t> waiting_;
  Order order_;
};

// Where a rank stands: `outer` ranks are nearer to the entrance, `inner` ones between it and the innermost.
struct DualPosition {
  int outer = 0, inner = 0;
  int microbatches = 0;  // of each phase
};

Order dual_order(const DualPosition& at, const std::array<DualWriter::Phase, 2>& phases) {
  DualWriter writer(phases);
  const int ranks = at.outer + at.inner + 1;  // from the entrance to the innermost
  // 1. Forwards fill the ranks, 2. until those of the other phase arrive.
  for (int i = 0; i < 2 * at.inner; ++i) writer.forward(0);
  for (int i = 0; i <= at.outer; ++i) writer.forward(0), writer.forward(1);
  // 3. The first gradients: their input gradients leave at once, others wait for them.
  for (int i = 0; i < at.inner; ++i) writer.input_gradient(1), writer.weight(), writer.forward(1);
  // 4. One forward beside one backward. The innermost rank has the first gradient before others have: it runs that
  // alone, and sends it on.
  for (int i = 0; i < at.microbatches - 2 * ranks + at.outer + 1; ++i) {
    if (i == 0 && at.inner == 0)
      writer.forward(0), writer.backward(1);
    else
      writer.pair(0, 1);
    writer.pair(1, 0);
  }
  // 5. No forwards of phase 0 are left, 6. then none at all, and from the middle on weight gradients wait again, 7. 8.
  // to be done while the last gradients travel.
  for (int i = 0; i < at.inner; ++i) writer.backward(1), writer.pair(1, 0);
  const int last_whole = at.outer;  // of the 2(outer + 1) backwards, the first outer + 1 are whole
  for (int i = 0; i < 2 * (at.outer + 1); ++i) {
    size_t phase = i % 2 == 0 ? 1 : 0;
    i <= last_whole ? writer.backward(phase) : writer.input_gradient(phase);
  }
  for (int i = 0; i < at.inner; ++i) writer.weight(), writer.input_gradient(0);
  for (int i = 0; i <= at.outer; ++i) writer.weight();
  return std::move(writer).order();
}

}  // namespace

Order dualpipev(const PipelineShape& shape, int rank) {
  return dual_order({rank, shape.ranks - 1 - rank, shape.microbatches}, {{{0, 0}, {1, 0}}});
}

Order dualpipe(const PipelineShape& shape, int rank) {
  int outer = std::min(rank, shape.ranks - 1 - rank), half = shape.microbatches / 2;
  DualWriter::Phase first{0, 0}, second{1, half};
  bool nearer_first = rank < shape.ranks / 2;
  return dual_order({outer, shape.ranks / 2 - 1 - outer, half},
                    {{nearer_first ? first : second, nearer_first ? second : first}});
}

}  // namespace sextant
