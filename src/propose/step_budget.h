// How many training steps there is time for.
#pragma once

#include <cstdint>

namespace sextant {

struct StepCost {
  double step_s = 0;
  double evaluation_s = 0;  // of one measurement of the validation loss; 0: there is none
};

// The seconds that measuring the loss of so many sequences takes, of a step of `step_sequences`: a forward pass is a
// third of a step.
double evaluation_seconds(double step_s, int64_t sequences, int64_t step_sequences);

// At least 1. The loss is measured after every `eval_every` steps and after the last; 0: never.
int64_t steps_within(double seconds, const StepCost& cost, int64_t eval_every);

// A number of steps of a schedule (its warm-up, its decay) of a run of `from` steps in one of `to`, in proportion.
int64_t in_proportion(int64_t steps, int64_t from, int64_t to);

// Of the learning rate's schedule.
struct ScheduleSteps {
  int64_t warmup = 0, decay = 0;
};

// Both in proportion, together at most `to`: where rounding gives more, the decay is kept and the warm-up shortened.
ScheduleSteps fit_schedule(const ScheduleSteps& given, int64_t from, int64_t to);

}  // namespace sextant
