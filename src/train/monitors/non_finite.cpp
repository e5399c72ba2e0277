// Ends a run whose loss or gradient norm is not finite for train.non_finite_steps steps in a row.
#include "train/health/non_finite_streak.h"
#include "train/monitors/monitors.h"
#include "train/rank_services.h"

namespace sextant {

namespace {

class NonFinite final : public Monitor {
 public:
  explicit NonFinite(NonFiniteStreak& streak) : streak_(streak) {}

  void restore(const RunState&) override { streak_.reset(); }

  RunActions after(const StepMetrics& metrics) override {
    streak_.note(metrics);
    return streak_.is_over_limit() ? RunActions{Stop{ExitCode::non_finite}} : RunActions{};
  }

 private:
  NonFiniteStreak& streak_;
};

}  // namespace

std::unique_ptr<Monitor> make_non_finite_monitor(RankServices& rank) {
  return std::make_unique<NonFinite>(rank.streak);
}

}  // namespace sextant
