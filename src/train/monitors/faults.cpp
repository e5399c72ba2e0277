// Injects the faults of a drill (faults/fault.h).
#include "train/faults/fault_injector.h"
#include "train/monitors/monitors.h"
#include "train/rank_services.h"

namespace sextant {

namespace {

class Faults final : public Monitor {
 public:
  Faults(FaultInjector& faults, Trainer& trainer) : faults_(faults), trainer_(trainer) {}

  RunActions before(int64_t step) override {
    faults_.before_step(step);
    trainer_.slow_down_input(faults_.slow_input_ms());
    trainer_.drill_next(faults_.drill_of(step));
    return {};
  }

 private:
  FaultInjector& faults_;
  Trainer& trainer_;
};

}  // namespace

std::unique_ptr<Monitor> make_faults_monitor(RankServices& rank) {
  return std::make_unique<Faults>(rank.faults, rank.trainer);
}

}  // namespace sextant
