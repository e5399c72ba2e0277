#include "base/exit_code.h"

namespace sextant {

namespace {

constexpr ExitMeaning kMeanings[] = {
    {ExitCode::finished, "finished", "the work is done", "nothing"},
    {ExitCode::unhealthy, "unhealthy", "`doctor` found a fault", "repair or replace the machine"},
    {ExitCode::bad_input, "bad input", "a config, option, file or model cannot be used",
     "correct it; a retry gives the same"},
    {ExitCode::run_failed, "run failed", "the run failed while running: disk, memory, device",
     "look at the message, then start again"},
    {ExitCode::internal_error, "internal error", "a fault in Sextant", "report it"},
    {ExitCode::stopped, "stopped",
     "a signal asked it to stop; a run saved first, `bench` and `doctor` print what they have",
     "start again: a run resumes"},
    {ExitCode::non_finite, "non-finite",
     "loss or gradients were not finite for `train.non_finite_steps` steps in a row, or logits of `generate` were not",
     "resume from an earlier checkpoint with other settings; a plain retry gives the same"},
    {ExitCode::rank_lost, "rank lost", "a rank stalled, died or could not be reached",
     "start again, perhaps without that host"},
    {ExitCode::does_not_fit, "does not fit", "the memory of the device is too small",
     "change the layout; the message names some"},
    {ExitCode::corruption, "corruption", "a check found numbers that are not what was computed or sent",
     "start again, without the host of the rank that is named"},
};

}  // namespace

std::span<const ExitMeaning> exit_meanings() {
  return kMeanings;
}

}  // namespace sextant
