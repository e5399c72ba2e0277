// Reports steps that have become slower than the run's own baseline, with the likely cause.
#include <algorithm>

#include "train/health/drift_watch.h"
#include "train/monitors/monitors.h"
#include "train/rank_services.h"

namespace sextant {

namespace {

RunEvent event_of(const Drift& drift) {
  EventDetails details{{"cause", std::string(name_of(drift.cause))},
                       {"since_step", drift.since_step},
                       {"before_s", drift.before_s},
                       {"now_s", drift.now_s}};
  if (drift.rank) details.set("rank", *drift.rank);
  return {.kind = EventKind::drift, .step = drift.step, .text = drift.text(), .details = details};
}

class DriftMonitor final : public Monitor {
 public:
  explicit DriftMonitor(RankServices& rank)
      : rank_(rank), watch_(rank.executor.target().name == "cpu" ? MessagesTimed::yes : MessagesTimed::no) {}

  RunActions after(const StepMetrics& m) override {
    // Steps that are timed op by op are slow on purpose, and those issued after them wait.
    if (rank_.tracer.slows_down(m.step)) return {};
    std::optional<Drift> drift = watch_.note(timed_step(m, rank_.parts.processes_on_host));
    if (!drift) return {};
    // A rank that its peers' times have shown to be slow is an event already.
    if (drift->rank && rank_.slow_rank.is_named(*drift->rank, drift->since_step)) return {};
    if (drift->rank) rank_.slow_rank = {*drift->rank, rank_.state.step};
    return {SayLine{fmt::format("step {}: {}", drift->step, drift->text())}, event_of(*drift)};
  }

 private:
  RankServices& rank_;
  DriftWatch watch_;
};

}  // namespace

// The leader's: no rank does anything else because of it.
std::unique_ptr<Monitor> make_drift_monitor(RankServices& rank) {
  return rank.group.leads() ? std::make_unique<DriftMonitor>(rank) : nullptr;
}

}  // namespace sextant
