// Warns where many steps are repeated because more rows went to experts than were planned.
#include "train/health/repeated_steps.h"
#include "train/monitors/monitors.h"
#include "train/rank_services.h"

namespace sextant {

namespace {

class RepeatedStepsMonitor final : public Monitor {
 public:
  explicit RepeatedStepsMonitor(double capacity) : steps_(capacity) {}

  RunActions after(const StepMetrics& metrics) override {
    std::optional<std::string> warning = steps_.note(metrics);
    return warning ? RunActions{SayLine{*warning}} : RunActions{};
  }

 private:
  RepeatedSteps steps_;
};

}  // namespace

std::unique_ptr<Monitor> make_repeated_steps_monitor(RankServices& rank) {
  return std::make_unique<RepeatedStepsMonitor>(rank.run.mesh.expert_capacity);
}

}  // namespace sextant
