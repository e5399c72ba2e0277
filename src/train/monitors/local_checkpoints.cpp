// When local checkpoints are written: every checkpoint.local_every steps but the last.
#include "train/save/local_checkpoints.h"
#include "train/monitors/monitors.h"
#include "train/rank_services.h"

namespace sextant {

namespace {

class LocalCheckpointCadence final : public Monitor {
 public:
  explicit LocalCheckpointCadence(const RankServices& rank) : rank_(rank) {}

  bool reads_weights_after(int64_t step) const override { return rank_.local.is_due(step); }

  RunActions after(const StepMetrics& m) override {
    return rank_.local.is_due(m.step) && m.step < rank_.last_step() ? RunActions{SaveLocally{}} : RunActions{};
  }

 private:
  const RankServices& rank_;
};

}  // namespace

std::unique_ptr<Monitor> make_local_checkpoints_monitor(RankServices& rank) {
  return std::make_unique<LocalCheckpointCadence>(rank);
}

}  // namespace sextant
