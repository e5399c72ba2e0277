#include "train/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace sextant {

double learning_rate(const OptimizerSection& o, int64_t steps, int64_t step) {
  if (step <= o.warmup) return o.lr * static_cast<double>(step) / static_cast<double>(o.warmup);
  // How far the step is between the end of warm-up (0) and the last step (1).
  auto progress = [&](int64_t from) {
    return std::clamp(static_cast<double>(step - from) / static_cast<double>(std::max<int64_t>(1, steps - from)), 0.0,
                      1.0);
  };
  if (o.schedule == "constant") return o.lr;
  if (o.schedule == "cosine")
    return o.min_lr + (o.lr - o.min_lr) * 0.5 * (1 + std::cos(std::numbers::pi * progress(o.warmup)));
  if (o.schedule == "linear") return o.lr + (o.min_lr - o.lr) * progress(o.warmup);
  if (o.schedule == "wsd") return step <= steps - o.decay ? o.lr : o.lr + (o.min_lr - o.lr) * progress(steps - o.decay);
  BUG_IF(o.schedule != "inverse-sqrt", "unknown schedule {}", o.schedule);
  double start = static_cast<double>(std::max<int64_t>(1, o.warmup));
  return std::max(o.min_lr, o.lr * std::sqrt(start / static_cast<double>(step)));
}

}  // namespace sextant
