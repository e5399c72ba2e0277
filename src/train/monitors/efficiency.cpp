// Tokens, FLOPs and memory of a step: what the run as a whole gives to its metrics.
#include <optional>
#include <utility>

#include "models/model_flops.h"
#include "train/monitors/monitors.h"
#include "train/rank_services.h"

namespace sextant {

namespace {

class Efficiency final : public Monitor {
 public:
  explicit Efficiency(const RankServices& rank)
      : rank_(rank),
        batch_tokens_(rank.batch_tokens()),
        step_flops_(model_flops_per_token(rank.parts.spec, rank.run.batch.seq).causal *
                    static_cast<double>(batch_tokens_)),
        arenas_(rank.arenas) {}

  void measure(StepMetrics& m) override {
    m.values.set(number::tokens, rank_.state.tokens - (rank_.state.step - m.step) * batch_tokens_);
    m.values.set(number::model_flops, step_flops_);
    const double seconds = m[number::step_s];
    if (rank_.peak_flops_per_s && seconds > 0)
      m.values.set(number::mfu, step_flops_ / seconds / *rank_.peak_flops_per_s);
    else
      m.values.set_unknown(number::mfu);
    if (!arenas_.empty()) m.values.set(number::arena_bytes_by_rank, std::exchange(arenas_, {}));
  }

 private:
  const RankServices& rank_;
  int64_t batch_tokens_;
  double step_flops_;            // of the model, over all ranks
  std::vector<int64_t> arenas_;  // of all ranks, for the first step
};

}  // namespace

std::unique_ptr<Monitor> make_efficiency_monitor(RankServices& rank) {
  return std::make_unique<Efficiency>(rank);
}

}  // namespace sextant
