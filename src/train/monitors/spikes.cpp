// Answers spikes of the loss or the gradient norm as train.spike says: with an event, a skipped update, a lower rate or
// a rewind.
#include <algorithm>

#include "train/health/spike_watch.h"
#include "train/monitors/monitors.h"
#include "train/rank_services.h"

namespace sextant {

namespace {

class Spikes final : public Monitor {
 public:
  explicit Spikes(const SpikeSection& settings) : watch_(settings) {}

  void restore(const RunState& state) override { watch_.restore(state.spike); }
  void keep(RunState& state) const override { state.spike = watch_.state(); }
  void adjust(int64_t step, StepPolicy& policy) const override {
    StepPolicy own = watch_.policy_of(step);
    policy.rate_factor *= own.rate_factor;
    policy.norm_limit = std::min(policy.norm_limit, own.norm_limit);
  }

  RunActions after(const StepMetrics& metrics) override {
    std::optional<Spike> spike = watch_.note(metrics);
    if (!spike) return {};
    RunActions actions;
    if (spike->first) {
      actions.emplace_back(SayLine{fmt::format("step {}: spike: {}", spike->step, spike->text)});
      actions.emplace_back(RunEvent{.kind = EventKind::spike,
                                    .step = spike->step,
                                    .text = spike->text,
                                    .details = {{"action", std::string(word_of(watch_.answer()))}}});
    }
    if (watch_.may_rewind()) actions.emplace_back(Rewind{spike->step});
    return actions;
  }

 private:
  SpikeWatch watch_;
};

}  // namespace

std::unique_ptr<Monitor> make_spikes_monitor(RankServices& rank) {
  return std::make_unique<Spikes>(rank.run.train.spike);
}

}  // namespace sextant
