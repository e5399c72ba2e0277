// Alarms of the statistics of layers (log.tensor_stats_every).
#include <fmt/format.h>

#include "train/health/tensor_watch.h"
#include "train/monitors/monitors.h"

namespace sextant {

namespace {

class Tensors final : public Monitor {
 public:
  RunActions after(const StepMetrics& m) override {
    RunActions actions;
    if (!m.tensors) return actions;
    for (const TensorAlarm& alarm : watch_.note(m.step, m[number::lr], *m.tensors)) {
      actions.emplace_back(SayLine{fmt::format("step {}: {}: {}", alarm.step, name_of(alarm.kind), alarm.text)});
      actions.emplace_back(RunEvent{
          .kind = alarm.kind, .step = alarm.step, .text = alarm.text, .details = {{"layer", int64_t{alarm.layer}}}});
    }
    return actions;
  }

 private:
  TensorWatch watch_;
};

}  // namespace

std::unique_ptr<Monitor> make_tensors_monitor(RankServices&) {
  return std::make_unique<Tensors>();
}

}  // namespace sextant
