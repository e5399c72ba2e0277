#include "app/time_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/device.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/units.h"
#include "bench/step_bench.h"
#include "ckpt/model_directory.h"
#include "comm/launcher.h"
#include "config/load.h"
#include "propose/step_budget.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "run/run_target.h"
#include "train/save/resume.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr double kSecondsPerMinute = 60;
constexpr std::string_view kOnCommandLine = "command line: train.steps";

void set_steps(RunConfig& run, int64_t steps) {
  ScheduleSteps fitted =
      fit_schedule({.warmup = run.optimizer.warmup, .decay = run.optimizer.decay}, run.train.steps, steps);
  run.optimizer.warmup = fitted.warmup;
  run.optimizer.decay = fitted.decay;
  run.train.steps = steps;
}

void keep_schedule_of(const RunConfig& earlier, RunConfig& run) {
  run.train.steps = earlier.train.steps;
  run.optimizer.warmup = earlier.optimizer.warmup;
  run.optimizer.decay = earlier.optimizer.decay;
}

// Of the run that is resumed: in OUT, or of the named checkpoint where OUT is new.
fs::path config_of_resumed(const RunConfig& run, const fs::path& out) {
  constexpr std::string_view kName = "config.toml";
  std::error_code none;
  if (fs::path file = out / kName; fs::exists(file, none)) return file;
  fs::path file = out / kName;
  if (!run.checkpoint.resume.path().empty()) {
    file = fs::weakly_canonical(find_model_directory(run.checkpoint.resume.path())).parent_path() / kName;
    if (fs::exists(file, none)) return file;
  }
  throw UserError({.place = "--minutes",
                   .got = fmt::format("file not found: {}", file.string()),
                   .expected = "the config of the run that is resumed, whose steps are kept",
                   .hint = "leave --minutes out and give train.steps"});
}

void refuse_what_does_not_go_together(const RunConfig& run) {
  if (run.place_of("train.steps").starts_with(kOnCommandLine))
    throw UserError({.place = "--minutes",
                     .got = "train.steps is given, too",
                     .expected = "one of the two",
                     .hint = "--minutes chooses the steps"});
  if (running_under_mpi())
    throw UserError({.place = "--minutes",
                     .got = "the ranks are processes of mpirun or srun",
                     .expected = "ranks that are threads of one process, whose steps can be timed",
                     .hint = "give train.steps; the time of a step is in metrics.jsonl of a short run"});
}

}  // namespace

double timed_step(const RunConfig& run) {
  ModelSpec spec = resolve_spec(run);
  int ranks = run_shape(run, spec).mesh.world_size();
  LoweredRun lowered = lower_run(run, spec, target_for(run, ranks));
  const ExecutorMaker make_executor = executors_for(run);
  std::vector<double> seconds = time_steps({.run = run,
                                            .spec = spec,
                                            .make_executor = make_executor,
                                            .threads = threads_per_rank(run, ranks),
                                            .at_least_s = 0.3,
                                            .least_steps = 3,
                                            .most_steps = 50},
                                           lowered, Watch{})
                                    .seconds;
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

void fit_to_minutes(RunConfig& run, double minutes, const fs::path& out, Verbosity verbosity) {
  refuse_what_does_not_go_together(run);
  if (!starts_afresh(run, out)) {
    keep_schedule_of(load_config(config_of_resumed(run, out).string(), {}), run);
    if (verbosity != Verbosity::quiet)
      fmt::print("--minutes: the {} steps that the run began with\n", human_count(run.train.steps));
    return;
  }
  double step_s = timed_step(run);
  StepCost cost{.step_s = step_s, .evaluation_s = 0};
  const int64_t eval_every = has_validation(run) ? run.train.eval_every : 0;
  if (eval_every > 0) cost.evaluation_s = evaluation_seconds(step_s, run.train.eval_sequences, run.batch.sequences);
  set_steps(run, steps_within(kSecondsPerMinute * minutes, cost, eval_every));
  if (verbosity != Verbosity::quiet)
    fmt::print("--minutes {:g}: {} steps of {} as measured here, {} of them warm-up\n", minutes,
               human_count(run.train.steps), human_duration(step_s), human_count(run.optimizer.warmup));
}

}  // namespace sextant
