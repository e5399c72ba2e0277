// Records steps whose update was skipped.
#include <fmt/format.h>

#include <cmath>

#include "train/monitors/monitors.h"

namespace sextant {

namespace {

class SkippedUpdates final : public Monitor {
 public:
  RunActions after(const StepMetrics& m) override {
    if (!m.is_update_skipped()) return {};
    std::optional<double> limit = m.find(number::norm_limit);
    return {RunEvent{
        .kind = EventKind::skipped_step,
        .step = m.step,
        .text = fmt::format("the update was not applied: gradient norm {:.4g}{}", std::fabs(m[number::grad_norm]),
                            limit ? fmt::format(", limit {:.4g}", *limit) : "")}};
  }
};

}  // namespace

std::unique_ptr<Monitor> make_skipped_updates_monitor(RankServices&) {
  return std::make_unique<SkippedUpdates>();
}

}  // namespace sextant
