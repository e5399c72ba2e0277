// The loss on validation data, every train.eval_every steps and after the last step.
#include <cmath>
#include <numbers>
#include <optional>

#include "train/monitors/monitors.h"
#include "train/rank_services.h"

namespace sextant {

namespace {

class Validation final : public Monitor {
 public:
  explicit Validation(RankServices& rank) : rank_(rank) {}

  bool reads_weights_after(int64_t step) const override {
    return step % rank_.run.train.eval_every == 0 || step == rank_.last_step();
  }

  void measure(StepMetrics& m) override {
    if (!reads_weights_after(m.step)) return;
    std::optional<double> loss = rank_.trainer.evaluate();
    rank_.state.validation_loss = rank_.result.validation_loss = loss;
    if (!loss) return;
    m.values.set(number::validation_loss, *loss);
    m.values.set(number::perplexity, std::exp(*loss));
    const std::optional<double>& bytes = rank_.parts.dataset.validation_bytes_per_token;
    if (!bytes || *bytes <= 0) return;
    rank_.result.bits_per_byte = *loss / (*bytes * std::numbers::ln2);
    m.values.set(number::bits_per_byte, *rank_.result.bits_per_byte);
  }

 private:
  RankServices& rank_;
};

}  // namespace

std::unique_ptr<Monitor> make_validation_monitor(RankServices& rank) {
  return rank.run.train.eval_every > 0 ? std::make_unique<Validation>(rank) : nullptr;
}

}  // namespace sextant
