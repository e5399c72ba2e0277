// The learning rate of a step: a pure function of the settings, so that resume needs no state. A schedule is one row of
// kLrSchedules and its formula.
#pragma once

#include <cstdint>

#include "describe/choice.h"

namespace sextant {

enum class LrSchedule : uint8_t { constant, cosine, linear, wsd, inverse_sqrt };

struct LrSettings {
  double lr = 0, min_lr = 0;
  int64_t warmup = 0;  // steps; step w of them runs at lr·w/warmup
  int64_t decay = 0;   // steps of a fall at the end
  int64_t steps = 0;   // of the whole run
};

struct LrScheduleChoice : Choice<LrSchedule> {
  double (*rate)(const LrSettings& settings, int64_t step);  // behind the warm-up
  bool reads_decay = false;
};

namespace lr_schedules {
double constant(const LrSettings& settings, int64_t step);
double cosine(const LrSettings& settings, int64_t step);
double linear(const LrSettings& settings, int64_t step);
double wsd(const LrSettings& settings, int64_t step);
double inverse_sqrt(const LrSettings& settings, int64_t step);
}  // namespace lr_schedules

inline constexpr LrScheduleChoice kLrSchedules[] = {
    {{LrSchedule::constant, "constant", "`lr` to the end"}, lr_schedules::constant},
    {{LrSchedule::cosine, "cosine", "half a cosine down to `min_lr` at the last step"}, lr_schedules::cosine},
    {{LrSchedule::linear, "linear", "a line down to `min_lr` at the last step"}, lr_schedules::linear},
    {{LrSchedule::wsd, "wsd", "`lr`, then a line down to `min_lr` over the last `decay` steps"},
     lr_schedules::wsd,
     true},
    {{LrSchedule::inverse_sqrt, "inverse-sqrt", "lr·√(warmup/step), never below `min_lr`"}, lr_schedules::inverse_sqrt},
};
constexpr const auto& choices_of(LrSchedule) {
  return kLrSchedules;
}

// `step` counts from 1.
double learning_rate(LrSchedule schedule, const LrSettings& settings, int64_t step);

}  // namespace sextant
