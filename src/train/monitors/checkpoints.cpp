// When checkpoints are written, every checkpoint.every steps, and what became of those that are written in the
// background.
#include "train/monitors/monitors.h"
#include "train/rank_services.h"

namespace sextant {

namespace {

class Checkpoints final : public Monitor {
 public:
  explicit Checkpoints(RankServices& rank)
      : every_(rank.run.checkpoint.every), saver_(rank.saver), log_(rank.save_log) {}

  RunActions before(int64_t) override {
    saver_.check();
    return log_.take();
  }

  bool reads_weights_after(int64_t step) const override { return every_ > 0 && step % every_ == 0; }

  RunActions after(const StepMetrics& m) override {
    if (m.is_finite()) saver_.confirm();
    return reads_weights_after(m.step) ? RunActions{Save{}} : RunActions{};
  }

 private:
  int64_t every_;
  Saver& saver_;
  SaveLog& log_;
};

}  // namespace

std::unique_ptr<Monitor> make_checkpoints_monitor(RankServices& rank) {
  return std::make_unique<Checkpoints>(rank);
}

}  // namespace sextant
