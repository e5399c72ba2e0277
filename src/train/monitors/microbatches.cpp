// Computes a microbatch twice every train.check_microbatch_every steps.
#include "train/health/microbatch_check.h"
#include "train/monitors/monitors.h"
#include "train/rank_services.h"

namespace sextant {

namespace {

class Microbatches final : public Monitor {
 public:
  explicit Microbatches(RankServices& rank) : rank_(rank), check_(rank.trainer, rank.transport, rank.group) {}

  RunActions before(int64_t step) override {
    if ((step - 1) % rank_.run.train.check_microbatch_every == 0)
      check_.check(step, rank_.state.samples, rank_.faults.drill_of(step));
    return {};
  }

 private:
  RankServices& rank_;
  MicrobatchCheck check_;
};

}  // namespace

std::unique_ptr<Monitor> make_microbatches_monitor(RankServices& rank) {
  return rank.run.train.check_microbatch_every > 0 ? std::make_unique<Microbatches>(rank) : nullptr;
}

}  // namespace sextant
