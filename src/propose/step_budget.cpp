#include "propose/step_budget.h"

#include <algorithm>
#include <cmath>

namespace sextant {

namespace {

constexpr double kUnlimited = 1e12;  // steps

}  // namespace

double evaluation_seconds(double step_s, int64_t sequences, int64_t step_sequences) {
  return step_s / 3 * static_cast<double>(sequences) / static_cast<double>(std::max<int64_t>(step_sequences, 1));
}

int64_t steps_within(double seconds, const StepCost& cost, int64_t eval_every) {
  double of_step = cost.step_s, at_the_end = 0;
  if (eval_every > 0) {
    of_step += cost.evaluation_s / static_cast<double>(eval_every);
    at_the_end = cost.evaluation_s;
  }
  if (of_step <= 0) return static_cast<int64_t>(kUnlimited);
  return static_cast<int64_t>(std::clamp(std::floor((seconds - at_the_end) / of_step), 1.0, kUnlimited));
}

int64_t in_proportion(int64_t steps, int64_t from, int64_t to) {
  if (steps <= 0 || from <= 0) return 0;
  double scaled = std::round(static_cast<double>(steps) * static_cast<double>(to) / static_cast<double>(from));
  return std::clamp<int64_t>(static_cast<int64_t>(scaled), 1, to);
}

ScheduleSteps fit_schedule(const ScheduleSteps& given, int64_t from, int64_t to) {
  int64_t decay = in_proportion(given.decay, from, to);
  return {.warmup = std::min(in_proportion(given.warmup, from, to), to - decay), .decay = decay};
}

}  // namespace sextant
