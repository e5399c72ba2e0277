#include "optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sextant {

namespace {

// How far the step is between `from` (0) and the last step (1).
double progress(const LrSettings& settings, int64_t step, int64_t from) {
  return std::clamp(static_cast<double>(step - from) / static_cast<double>(std::max<int64_t>(1, settings.steps - from)),
                    0.0, 1.0);
}

}  // namespace

double lr_schedules::constant(const LrSettings& settings, int64_t) {
  return settings.lr;
}

double lr_schedules::cosine(const LrSettings& s, int64_t step) {
  return s.min_lr + (s.lr - s.min_lr) * 0.5 * (1 + std::cos(std::numbers::pi * progress(s, step, s.warmup)));
}

double lr_schedules::linear(const LrSettings& s, int64_t step) {
  return s.lr + (s.min_lr - s.lr) * progress(s, step, s.warmup);
}

double lr_schedules::wsd(const LrSettings& s, int64_t step) {
  const int64_t stable = s.steps - s.decay;
  return step <= stable ? s.lr : s.lr + (s.min_lr - s.lr) * progress(s, step, stable);
}

double lr_schedules::inverse_sqrt(const LrSettings& s, int64_t step) {
  double start = static_cast<double>(std::max<int64_t>(1, s.warmup));
  return std::max(s.min_lr, s.lr * std::sqrt(start / static_cast<double>(step)));
}

double learning_rate(LrSchedule schedule, const LrSettings& settings, int64_t step) {
  if (step <= settings.warmup) return settings.lr * static_cast<double>(step) / static_cast<double>(settings.warmup);
  return choice_of(schedule).rate(settings, step);
}

}  // namespace sextant
