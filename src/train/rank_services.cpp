#include "train/rank_services.h"

#include <cmath>
#include <variant>

#include "base/error.h"
#include "run/run_target.h"

namespace sextant {

namespace {

SameWork same_work(const RunConfig& run, const Executor& executor) {
  return determinism_of(run) == Determinism::repeatable || executor.target().name == "cpu"
             ? SameWork::same_bits
             : SameWork::may_round_differently;
}

}  // namespace

RankServices::RankServices(const RankRunParts& run_parts, Executor& run_executor, HostGroup& run_group,
                           RankPosition& run_position, Transport* run_transport)
    : parts(run_parts),
      run(run_parts.run),
      executor(run_executor),
      group(run_group),
      position(run_position),
      transport(run_transport),
      trainer({run, parts.programs, parts.dataset, executor, group, &position.rank_status}),
      local({run, parts.local_folder, trainer.bound(), group, transport, position.rank_status}),
      faults({parts.faults, parts.out, group.size(), trainer.bound(), position.rank_status, parts.spec.layers,
              !parts.local_folder.empty(), [this](int first, int count) { local.lose_held_by(first, count); }}),
      saver({run, parts.out, parts.spec, parts.dropout, parts.dataset.tokenizer.get(), files, experts, trainer.bound(),
             transport, position.rank_status, faults}),
      save_log(saver, group),
      replicas(trainer.bound(), transport, same_work(run, executor)),
      streak(run.train.non_finite_steps, static_cast<float>(run.train.loss_scale.minimum)),  // the scale is an f32
      tracer(parts.out, run.log.profile_every, parts.view.profile),
      output({.out = parts.out,
              .lock = parts.lock,
              .on_event = run.log.on_event,
              .steps = run.train.steps,
              .lines_every = parts.view.verbosity == Verbosity::verbose ? 1 : run.train.log_every,
              .lines = parts.lines,
              .verbosity = parts.view.verbosity,
              .writes = group.leads() ? RunOutput::Writes::yes : RunOutput::Writes::no}) {}

void RankServices::record_checksums() {
  bool cheap = executor.target().name == "cpu";
  if (!run.train.check_memory.value_or(cheap)) return;
  trainer.bound().record_checksums();
  if (run.train.check_memory && !trainer.bound().has_checksums())
    throw UserError({.place = run.place_of("train.check_memory"),
                     .got = fmt::format("true on a device ({}) that has no such check", executor.target().name),
                     .expected = "false, or device = \"cpu\"",
                     .hint = "train.check_replicas_every works on every device"});
}

void RankServices::report(const RunActions& actions) {
  for (const RunAction& action : actions) {
    if (const auto* say = std::get_if<SayLine>(&action)) output.say(say->line);
    if (const auto* event = std::get_if<RunEvent>(&action)) output.record(*event);
  }
}

void RankServices::save(Saver::Occasion occasion) {
  output.require_directory();
  for (const auto& monitor : monitors) monitor->keep(state);
  const bool loss_is_finite = std::isfinite(result.loss);
  // The update of such a step is skipped, and the run may be about to end: it is to go on from before it.
  bool spoiled = occasion == Saver::Occasion::periodic && streak.steps() > 0;
  if (loss_is_finite && !spoiled)
    saver.save(state, occasion);
  else
    output.say(fmt::format("step {}: no checkpoint is written: the {} is not finite", state.step,
                           loss_is_finite ? "gradient norm" : "loss"));
}

}  // namespace sextant
