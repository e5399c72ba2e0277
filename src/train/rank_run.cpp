#include "train/rank_run.h"

#include <cmath>
#include <optional>
#include <utility>

#include "base/corruption.h"
#include "base/error.h"
#include "comm/tags.h"
#include "train/health/failure_record.h"
#include "train/rank_services.h"
#include "train/requests.h"
#include "train/run_end.h"
#include "train/run_rewind.h"
#include "train/run_start.h"

namespace sextant {

namespace {

// The loop over steps. Only the leader prints and writes metrics; all take part in steps, evaluations and saves.
class RankLoop {
 public:
  RankLoop(RankServices& rank, const StopRequest& stop) : rank_(rank), requests_(rank.parts.out, stop, rank.group) {}

  TrainResult run() {
    start_run(rank_);
    const bool idle = rank_.state.step >= rank_.last_step();
    if (rank_.state.step >= rank_.run.train.steps)
      rank_.output.say(
          fmt::format("nothing to do: all {} steps are done; a larger train.steps goes on", rank_.run.train.steps));
    while (continues()) {
      begin_step();
      finish_steps();
      rewind();
    }
    finish_steps_down_to(0);
    rank_.position.watch.begin_other_work();
    rewind();
    end_run(rank_, wanted_.stop);
    rank_.output.require_results(rank_.result.checkpoint);
    if (!idle) rank_.output.record(outcome_event(rank_.result));
    return rank_.result;
  }

 private:
  bool continues() {
    if (rank_.state.step >= rank_.last_step() || wanted_.stop) return false;
    rank_.output.require_directory();
    asked_ = requests_.look();
    return !asked_.stop;
  }

  void begin_step() {
    try {
      prepare_step(rank_.state.step + 1);
      issue_step(rank_.state.step + 1);
    } catch (const Corruption&) {
      while (rank_.group.size() == 1 && rank_.trainer.steps_under_way() > 1) finish_step();  // those before it are done
      throw;
    }
    rank_.state.step += 1;
    rank_.state.validation_loss.reset();
    rank_.state.samples += rank_.run.batch.sequences;
    rank_.state.tokens += rank_.batch_tokens();
  }

  void prepare_step(int64_t step) {
    RankPosition& position = rank_.position;
    position.rank_status.begin_step(step);
    position.heartbeat.note_times(rank_.trainer.clock().last());
    position.watch.begin_step();
    position.heartbeat.beat();
    for (const auto& monitor : rank_.monitors) carry_out(monitor->before(step));
  }

  void issue_step(int64_t step) {
    Trainer& trainer = rank_.trainer;
    StepPolicy policy;
    for (const auto& monitor : rank_.monitors) monitor->adjust(step, policy);
    const bool traced = rank_.tracer.traces(step);
    if (traced) {
      rank_.position.watch.begin_other_work();
      trainer.clock().leave_out(trainer.steps_under_way() + 1);
    }
    Trace trace;
    OpObserver* spoiler = rank_.faults.spoiled_op(step);
    if (spoiler) trainer.bound().observe(spoiler);
    trainer.begin_step(step, rank_.state.samples, policy, traced ? &trace : nullptr);
    if (spoiler) trainer.bound().observe(nullptr);
    rank_.faults.slow_down(rank_.position.rank_status);
    if (traced) rank_.tracer.keep(step, trace, trainer.bound().program(), rank_.group, rank_.executor);
  }

  // Where the weights are read, or nothing follows, the device is waited for; else the host stays ahead of it.
  bool is_pause(int64_t step) const {
    bool read = asked_.save || step == rank_.last_step();
    for (const auto& monitor : rank_.monitors) read = read || monitor->reads_weights_after(step);
    return read;
  }

  void finish_steps() {
    const bool pause = is_pause(rank_.state.step);
    finish_steps_down_to(pause ? 0 : rank_.trainer.steps_ahead());
    wanted_.save = wanted_.save || asked_.save;
    if (wanted_.save || wanted_.save_locally) finish_steps_down_to(0);
    if (std::exchange(wanted_.save_locally, false) && !wanted_.rewind) save_locally();
    if (std::exchange(wanted_.save, false) && !wanted_.rewind) rank_.save(Saver::Occasion::periodic);
  }

  // Steps after one that is rewound run again, and are seen then.
  void finish_steps_down_to(int under_way) {
    while (rank_.trainer.steps_under_way() > under_way && !wanted_.rewind) finish_step();
  }

  void finish_step() {
    StepMetrics metrics = rank_.trainer.finish_step();
    rank_.result.loss = metrics[number::loss];
    if (metrics.step == rank_.state.step && is_pause(metrics.step)) rank_.position.watch.begin_other_work();
    for (const auto& monitor : rank_.monitors) monitor->measure(metrics);
    rank_.output.step(metrics);
    for (const auto& monitor : rank_.monitors) carry_out(monitor->after(metrics));
  }

  // Reports at once; the rest when all monitors have seen the step.
  void carry_out(const RunActions& actions) {
    rank_.report(actions);
    for (const RunAction& action : actions) {
      wanted_.save = wanted_.save || std::holds_alternative<Save>(action);
      wanted_.save_locally = wanted_.save_locally || std::holds_alternative<SaveLocally>(action);
      if (const auto* rewind = std::get_if<Rewind>(&action); rewind && !wanted_.rewind) wanted_.rewind = rewind->step;
      if (const auto* stop = std::get_if<Stop>(&action); stop && !wanted_.stop) wanted_.stop = stop->outcome;
    }
  }

  // A run that has gone back has its steps again to do better.
  void rewind() {
    std::optional<int64_t> step = std::exchange(wanted_.rewind, {});
    if (step && rewind_run(rank_, *step)) wanted_.stop.reset();
  }

  // One that fails is reported; the run has the one before, and durable ones.
  void save_locally() {
    if (!std::isfinite(rank_.result.loss) || rank_.streak.steps() > 0) return;
    for (const auto& monitor : rank_.monitors) monitor->keep(rank_.state);
    if (std::string failure = rank_.local.save(rank_.state); !failure.empty())
      rank_.output.say(fmt::format("step {}: no local checkpoint: {}", rank_.state.step, failure));
  }

  RankServices& rank_;
  Requests requests_;
  Switches::Asked asked_;
  // By monitors, and not done yet.
  struct Wanted {
    bool save = false, save_locally = false;
    std::optional<int64_t> rewind = {};
    std::optional<ExitCode> stop = {};
  } wanted_;
};

}  // namespace

TrainResult run_rank(const RankRunParts& parts, Executor& executor, const RankContext& context,
                     const StopRequest& stop) {
  HostGroup group = context.transport ? HostGroup(*context.transport, kHostTag) : HostGroup();
  RankPosition position(parts.out, context, TimeLimits(parts.run));
  RankServices rank(parts, executor, group, position, context.transport);
  try {
    TrainResult result = RankLoop(rank, stop).run();
    group.barrier();  // no process leaves before all have done their work
    position.heartbeat.finish();
    return result;
  } catch (const RunEnded&) {
    position.heartbeat.end();
    rank.saver.check();  // where a save in the background has ended the run, that is the cause
    throw;
  } catch (const std::exception& error) {
    if (exit_code_of(error) == ExitCode::rank_lost) {
      position.heartbeat.beat();  // it still waits, and says so
      record_hang(parts.out, parts.run.log);
    }
    position.heartbeat.fail(error.what());
    record_failure(parts.out, parts.run.log, context.rank, position.rank_status.seen().step, error);
    // Here, where its memory still is: messages may be on their way into it.
    if (context.transport)
      context.transport->abort(fmt::format("rank {} ended with: {}", context.rank, error.what()), exit_code_of(error));
    throw;
  }
}

}  // namespace sextant
