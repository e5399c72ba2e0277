#include "train/run_end.h"

#include <fmt/format.h>

#include <cmath>

#include "train/health/switches.h"
#include "train/save/run_directory.h"

namespace sextant {

namespace {

ExitCode outcome_of(const RankServices& rank, std::optional<ExitCode> stop) {
  if (stop) return *stop;
  if (!std::isfinite(rank.result.loss)) return ExitCode::non_finite;
  return rank.state.step < rank.run.train.steps ? ExitCode::stopped : ExitCode::finished;
}

void write_last_checkpoint(RankServices& rank) {
  rank.saver.finish();
  if (rank.run.checkpoint.at_end && rank.saver.newest().step != rank.state.step && rank.state.step > 0 &&
      !rank.streak.is_over_limit())
    rank.save(Saver::Occasion::last);
  rank.saver.finish();
  if (rank.result.outcome != ExitCode::non_finite) rank.saver.confirm();
  rank.saver.finish();
  rank.report(rank.save_log.take());
  rank.result.checkpoint = rank.saver.newest().path;
}

// Weights that a step has ruined may still be finite, and saved: the next start is to go on from before them.
void end_non_finite(RankServices& rank) {
  Checkpoint good = rank.saver.newest_confirmed();
  const int64_t steps = rank.streak.steps();
  rank.output.say(
      fmt::format("stopped at step {}: loss or gradient norm not finite for {} step{} in a row\n"
                  "  hint: lower optimizer.lr or optimizer.clip, or lengthen optimizer.warmup",
                  rank.state.step, steps, steps == 1 ? "" : "s"));
  if (good.step < 0) return rank.output.say("no checkpoint with a finite loss was written before");
  if (auto aside = set_aside_later_steps(rank.parts.out, good.step))
    rank.output.say(
        fmt::format("checkpoints after step {} gave no finite loss and were moved to {}", good.step, aside->string()));
  rank.output.say(fmt::format("the last checkpoint that gave a finite loss is {}", good.path.string()));
  rank.result.checkpoint = good.path;
}

void say_how_to_resume(RankServices& rank) {
  const std::filesystem::path& out = rank.parts.out;
  rank.output.say(
      fmt::format("stopped at step {}; the same command{} resumes from here{}", rank.state.step,
                  rank.run.checkpoint.resume.is_latest() ? "" : " with checkpoint.resume=auto",
                  stop_file_exists(out) ? fmt::format(", once {} is removed", (out / kStopFile).string()) : ""));
}

}  // namespace

void end_run(RankServices& rank, std::optional<ExitCode> stop) {
  rank.result.outcome = outcome_of(rank, stop);
  write_last_checkpoint(rank);
  if (rank.result.outcome == ExitCode::stopped) say_how_to_resume(rank);
  if (rank.result.outcome == ExitCode::non_finite && rank.group.leads()) end_non_finite(rank);
  // The run must not resume from the local checkpoints, or the durable checkpoint holds the same step.
  if (rank.result.outcome != ExitCode::stopped || rank.saver.newest().step == rank.state.step) rank.local.discard();
  rank.result.step = rank.state.step;
  rank.result.unigram_entropy = rank.parts.dataset.unigram_entropy;
}

RunEvent outcome_event(const TrainResult& result) {
  if (result.outcome == ExitCode::finished)
    return {.kind = EventKind::finish,
            .step = result.step,
            .text = fmt::format("all {} steps are done, loss {:.4f}", result.step, result.loss)};
  if (result.outcome == ExitCode::stopped)
    return {.kind = EventKind::stop, .step = result.step, .text = "asked to stop; saved"};
  return {.kind = EventKind::failure,
          .step = result.step,
          .text = "loss or gradient norm not finite",
          .details = {{"exit_code", number_of(result.outcome)}}};
}

}  // namespace sextant
