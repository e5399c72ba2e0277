#include "train/rank_run.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/corruption.h"
#include "base/error.h"
#include "base/exit_within.h"
#include "base/printable.h"
#include "base/thread_probe.h"
#include "base/units.h"
#include "ckpt/model_weights.h"
#include "comm/tags.h"
#include "events/event_log.h"
#include "models/model.h"
#include "models/model_flops.h"
#include "ops/fp8_recipe.h"
#include "run/programs.h"
#include "run/run_identity.h"
#include "run/run_target.h"
#include "train/data/dataset.h"
#include "train/faults/fault_injector.h"
#include "train/health/drift_watch.h"
#include "train/health/failure_record.h"
#include "train/health/heartbeat.h"
#include "train/health/microbatch_check.h"
#include "train/health/non_finite_streak.h"
#include "train/health/repeated_steps.h"
#include "train/health/replica_check.h"
#include "train/health/spike_watch.h"
#include "train/health/stall_watch.h"
#include "train/health/stop.h"
#include "train/health/straggler.h"
#include "train/health/switches.h"
#include "train/health/tensor_watch.h"
#include "train/op_times.h"
#include "train/progress.h"
#include "train/save/finite_check.h"
#include "train/save/local_checkpoints.h"
#include "train/save/resume.h"
#include "train/save/rewind.h"
#include "train/save/run_checkpoint.h"
#include "train/save/run_directory.h"
#include "train/save/saver.h"
#include "train/source_model.h"
#include "train/trainer.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kStragglerWindow = 10;  // steps

// Where one rank stands, for itself and for those who look on.
struct Position {
  Position(const fs::path& out, const RankContext& context, const TimeLimits& limits)
      : rank_status(context.transport ? context.transport->rank_status() : alone),
        heartbeat(out, context.rank, rank_status),
        watch({rank_status, context.transport, limits,
               [this, rank = context.rank](const std::string& why) { end_stalled(rank, why); }}),
        out_(out),
        thread_(::gettid()) {}

  // Nothing of a rank that hangs can be cleaned up; and what is said about it may hang too, on the same disk.
  void end_stalled(int rank, const std::string& stood_still) {
    exit_within(std::chrono::seconds(1), ExitCode::rank_lost);
    std::optional<ThreadProbe> probe = probe_thread(::getpid(), thread_);
    std::string why = stood_still + (probe ? fmt::format("; its thread {} {}", thread_, probe->text()) : "");
    std::fputs(fmt::format("sextant: rank {} {}; the process ends (train.timeout_s)\n", rank, why).c_str(), stderr);
    heartbeat.fail(why);
    try {
      append_event(out_, {.kind = EventKind::hang,
                          .step = rank_status.seen().step,
                          .text = fmt::format("rank {} {}", rank, why),
                          .details = {{"late_rank", rank}, {"host", own_host_name()}}});
    } catch (const RunError&) {
      // It has been said on standard error.
    }
    ::_exit(number_of(ExitCode::rank_lost));
  }

  RankStatus alone;  // when there is no transport to keep it
  RankStatus& rank_status;
  Heartbeat heartbeat;
  StallWatch watch;

 private:
  fs::path out_;
  pid_t thread_;
};

SameWork same_work(const RunConfig& run, const Executor& executor) {
  return determinism_of(run) == Determinism::repeatable || executor.target().name == "cpu"
             ? SameWork::same_bits
             : SameWork::may_round_differently;
}

// The run on one rank. Only the leader prints and writes metrics; all take part in steps, evaluations and
// saves.
class Run {
 public:
  Run(const RankRunParts& parts, Executor& executor, HostGroup& group, Position& position, Transport* transport)
      : parts_(parts),
        run_(parts.run),
        executor_(executor),
        group_(group),
        position_(position),
        trainer_({parts.run, parts.programs, parts.dataset, executor, group, &position.rank_status}),
        local_({parts.run, parts.local_folder, trainer_.bound(), group, transport, position.rank_status}),
        faults_({parts.faults, parts.out, group.size(), trainer_.bound(), position.rank_status, parts.spec.layers,
                 !parts.local_folder.empty(), [this](int first, int count) { local_.lose_held_by(first, count); }}),
        saver_({parts.run, parts.out, parts.spec, parts.dropout, parts.dataset.tokenizer.get(), files_, experts_,
                trainer_.bound(), transport, position.rank_status, faults_}),
        replicas_(trainer_.bound(), transport, same_work(parts.run, executor)),
        microbatches_(trainer_, run_.train.check_microbatch_every > 0 ? transport : nullptr, group),
        drift_(executor.target().name == "cpu" ? MessagesTimed::yes : MessagesTimed::no) {}

  // Where a save in the background has ended the run, that is the cause.
  void rethrow_failed_save() { saver_.check(); }

  TrainResult finish_steps(const StopRequest& stop) {
    if (group_.leads()) events_.emplace(parts_.out, run_.log.on_event);
    begin();
    if (group_.leads()) {
      metrics_.emplace(parts_.out / "metrics.jsonl", state_.step);
      if (parts_.view.verbosity != Verbosity::quiet)
        progress_.emplace(state_.step + 1, run_.train.steps, lines_every(), parts_.lines);
    }
    bool idle = state_.step >= last_step();
    if (state_.step >= run_.train.steps)
      say(fmt::format("nothing to do: all {} steps are done; a larger train.steps goes on", run_.train.steps));
    Switches::Asked asked;
    const int64_t last = last_step();
    while (state_.step < last && !is_diverged() && !is_range_test_over() && !(asked = asked_of_all(stop)).stop) {
      try {
        begin_step();
      } catch (const Corruption&) {
        while (group_.size() == 1 && trainer_.steps_under_way() > 1) record(finish_step());  // those before it are done
        throw;
      }
      // Where something looks at the weights, or nothing follows, the device is waited for; else the host stays ahead
      // of it.
      bool pause = is_due(run_.train.eval_every) || is_due(run_.checkpoint.every) || state_.step == last ||
                   asked.save || local_.is_due(state_.step);
      while (trainer_.steps_under_way() > (pause ? 1 : trainer_.steps_ahead())) record(finish_step());
      if (pause && !rewind_from_) {
        StepMetrics m = finish_step();
        position_.watch.begin_other_work();
        if (run_.train.eval_every > 0 && (is_due(run_.train.eval_every) || state_.step == last)) measure(m);
        record(m);
        if (local_.is_due(state_.step) && state_.step < last && !rewind_from_) save_locally();
        if ((is_due(run_.checkpoint.every) || asked.save) && !rewind_from_) save(Saver::Occasion::periodic);
      }
      if (rewind_from_) rewind(*std::exchange(rewind_from_, {}));
    }
    while (trainer_.steps_under_way() > 0) record(finish_step());
    position_.watch.begin_other_work();
    if (rewind_from_) rewind(*std::exchange(rewind_from_, {}));
    end();
    if (group_.leads()) require_results();
    if (!idle) record_outcome();
    return result_;
  }

 private:
  // Behind which it stops this time.
  int64_t last_step() const {
    return parts_.view.until > 0 ? std::min(parts_.view.until, run_.train.steps) : run_.train.steps;
  }

  void begin() {
    const fs::path& from = parts_.resume.checkpoint;
    fs::path source = !from.empty() ? from : fs::path(run_.model.from.value_or(""));
    if (group_.leads() && !source.empty()) files_ = files_to_keep(source, parts_.dataset.tokenizer.get());
    if (!source.empty()) experts_ = expert_files_in(WeightsReader(source), parts_.spec);
    if (const std::optional<LocalPoint>& local = parts_.resume.local) {
      state_ = local->state;
      load_local_copy(local->copies[static_cast<size_t>(group_.rank())], trainer_.bound());
      spikes_.restore(state_.spike);
      if (auto durable = step_of_checkpoint(from)) saver_.resumed_from({*durable, from});
      recorded_checkpoint_ = saver_.newest().step;
    } else if (!from.empty()) {
      state_ = load_run_checkpoint(from, trainer_.bound(), parts_.spec, optimizer_of(run_));
      spikes_.restore(state_.spike);
      saver_.resumed_from({state_.step, from});
      recorded_checkpoint_ = state_.step;
    } else if (run_.model.from) {
      source_ = load_source_model(trainer_.bound(), run_, parts_.spec);
    } else {
      initialize_weights(trainer_.bound(), static_cast<uint64_t>(run_.train.seed));
    }
    record_checksums();
    try {
      require_finite(parts_.resume.local ? parts_.local_folder.string()
                     : from.empty()      ? run_.model.from.value_or("")
                                         : from.string());
      if (run_.train.check_replicas_every > 0) replicas_.check_all();
    } catch (const RunError&) {
      // Copies that were taken of a state which was wrong already: the next start resumes from before them.
      if (parts_.resume.local) discard_local_copies(parts_.local_folder, -1);
      throw;
    }
    state_.identity = parts_.identity;
    arenas_.assign(static_cast<size_t>(group_.size()), 0);
    arenas_[static_cast<size_t>(group_.rank())] = trainer_.arena_bytes();
    group_.sum(arenas_);
    // Every rank has what it needs of the checkpoint, and every check has passed: only now is anything changed on disk.
    group_.barrier();
    if (group_.leads()) begin_directory(from);
    group_.barrier();
    local_.begin(parts_.resume.local ? state_.step : -1);
  }

  // Of what has been read or drawn; steps go on from there.
  void record_checksums() {
    bool cheap = executor_.target().name == "cpu";
    if (!run_.train.check_memory.value_or(cheap)) return;
    trainer_.bound().record_checksums();
    if (run_.train.check_memory && !trainer_.bound().has_checksums())
      throw UserError({.place = run_.place_of("train.check_memory"),
                       .got = fmt::format("true on a device ({}) that has no such check", executor_.target().name),
                       .expected = "false, or device = \"cpu\"",
                       .hint = "train.check_replicas_every works on every device"});
  }

  void begin_directory(const fs::path& from) {
    const fs::path& source = parts_.resume.local ? parts_.local_folder : from;
    if (!source.empty()) {
      std::string origin =
          fmt::format("resuming from {}{} (step {})", parts_.resume.local ? "local checkpoints in " : "",
                      source.string(), state_.step);
      say(origin);
      std::vector<std::string> changes;
      for (const ConfigChange& change : parts_.resume.changes) changes.push_back(change.text());
      if (state_.step < run_.train.steps)
        record_event({.kind = EventKind::resume,
                      .step = state_.step + 1,
                      .text = origin,
                      .details = {{"checkpoint", source.string()},
                                  {"ranks", group_.size()},
                                  {"tokenizer", parts_.identity.tokenizer},
                                  {"data", parts_.identity.data}}});
      if (!changes.empty()) {
        std::string text = fmt::format("config changed since then: {}", fmt::join(changes, "; "));
        say(text);
        record_event({.kind = EventKind::config_change,
                      .step = state_.step + 1,
                      .text = text,
                      .details = {{"changes", changes}}});
      }
      if (auto aside = set_aside_later_steps(parts_.out, state_.step))
        say(fmt::format("checkpoints after step {} were moved to {}", state_.step, aside->string()));
    } else if (run_.model.from) {
      say(fmt::format("starting from the weights of {}{}", *run_.model.from,
                      source_ == SourceModel::upcycled ? ", every expert as its MLP" : ""));
    }
    if (source.empty())
      record_event(
          {.kind = EventKind::start,
           .step = 1,
           .text = run_.model.from ? fmt::format("starting from the weights of {}", *run_.model.from)
                                   : "starting from random weights",
           .details = {
               {"ranks", group_.size()}, {"tokenizer", parts_.identity.tokenizer}, {"data", parts_.identity.data}}});
    record_config(parts_.out, run_, state_.step + 1);
    step_flops_ = model_flops_per_token(parts_.spec, run_.batch.seq).causal * static_cast<double>(batch_tokens());
    if (parts_.view.on_begin)
      peak_flops_per_s_ = parts_.view.on_begin(from.empty() ? Beginning::fresh : Beginning::resumed);
  }

  void require_finite(const std::string& source) {
    if (source.empty()) return;
    std::string tensor = group_.first_text(first_non_finite(trainer_.bound()));
    if (!tensor.empty())
      throw RunError(source, fmt::format("{} is not finite", tensor),
                     "start from other weights, or an earlier checkpoint", ExitCode::non_finite);
  }

  // Only the leader has a terminal.
  void say(const std::string& line) {
    if (progress_)
      progress_->say(line);
    else if (group_.leads() && parts_.view.verbosity != Verbosity::quiet)
      fmt::print("{}\n", printable(line, Newlines::kept));
  }

  int64_t lines_every() const { return parts_.view.verbosity == Verbosity::verbose ? 1 : run_.train.log_every; }

  void record(const StepMetrics& m) {
    non_finite_.note(m);
    if (m.is_finite()) saver_.confirm();
    if (metrics_) metrics_->append(m);
    if (progress_) progress_->step(m);
    if (std::optional<std::string> warning = repeated_.note(m)) say(*warning);
    if (m.is_update_skipped())
      record_event({.kind = EventKind::skipped_step,
                    .step = m.step,
                    .text = fmt::format(
                        "the update was not applied: gradient norm {:.4g}{}", std::fabs(m[number::grad_norm]),
                        m.find(number::norm_limit) ? fmt::format(", limit {:.4g}", m[number::norm_limit]) : "")});
    watch_for_drift(m);
    if (std::optional<Spike> spike = spikes_.note(m)) react_to(*spike);
    if (m.tensors) report_tensor_alarms(*m.tensors, m);
    if (range_test_) range_test_->note(m);
  }

  void report_tensor_alarms(const TensorStatistics& tensors, const StepMetrics& m) {
    for (const TensorAlarm& alarm : tensor_watch_.note(m.step, m[number::lr], tensors)) {
      say(fmt::format("step {}: {}: {}", alarm.step, name_of(alarm.kind), alarm.text));
      record_event(
          {.kind = alarm.kind, .step = alarm.step, .text = alarm.text, .details = {{"layer", int64_t{alarm.layer}}}});
    }
  }

  void watch_for_drift(const StepMetrics& m) {
    // Steps that are timed op by op are slow on purpose, and those issued behind them wait.
    if (!group_.leads() || (traced_step_ > 0 && m.step >= traced_step_ && m.step <= traced_step_ + 1)) return;
    std::optional<Drift> drift = drift_.note(timed_step(m, parts_.processes_on_host));
    if (!drift) return;
    // A rank that its peers' times have shown to be slow is an event already.
    if (drift->rank && drift->rank == slow_rank_ && slow_rank_told_ + 2 * kStragglerWindow >= drift->since_step) return;
    if (drift->rank) note_slow_rank(*drift->rank);
    say(fmt::format("step {}: {}", drift->step, drift->text()));
    EventDetails details{{"cause", std::string(name_of(drift->cause))},
                         {"since_step", drift->since_step},
                         {"before_s", drift->before_s},
                         {"now_s", drift->now_s}};
    if (drift->rank) details.set("rank", *drift->rank);
    record_event({.kind = EventKind::drift, .step = drift->step, .text = drift->text(), .details = details});
  }

  void react_to(const Spike& spike) {
    // Steps after the spike run again after the rewind, and are checked again.
    if (rewind_from_) return;
    if (spike.first) {
      say(fmt::format("step {}: spike: {}", spike.step, spike.text));
      record_event({.kind = EventKind::spike,
                    .step = spike.step,
                    .text = spike.text,
                    .details = {{"action", spikes_.answer()}}});
    }
    if (spikes_.may_rewind()) rewind_from_ = spike.step;
  }

  // Back to a checkpoint from before the step, past the samples that led to it.
  void rewind(int64_t spike) {
    while (trainer_.steps_under_way() > 0) trainer_.finish_step();
    position_.watch.begin_other_work();
    saver_.finish();
    say_notes();
    std::vector<fs::path> wanted;
    if (group_.leads()) wanted = rewind_candidates(parts_.out, spike, run_.train.spike.rewind_steps);
    fs::path to = first_whole(wanted, group_);
    if (to.empty()) return say(fmt::format("step {}: no checkpoint to go back to", spike));
    int64_t read = state_.samples - (state_.step - spike) * run_.batch.sequences;
    RunState found = load_run_checkpoint(to, trainer_.bound(), parts_.spec, optimizer_of(run_));
    record_checksums();
    int64_t rewinds = spikes_.state().rewinds;
    found.spike.rewinds = rewinds;
    spikes_.restore(found.spike);
    spikes_.count_rewind();
    state_ = with_samples_left_out(found, read, run_.train.spike.skip_steps * run_.batch.sequences);
    state_.identity = parts_.identity;
    if (!state_.spike.recent.empty()) result_.loss = state_.spike.recent.back().loss;
    non_finite_.reset();
    saver_.rewound_to({state_.step, to});
    group_.barrier();  // all have read it
    if (group_.leads()) rewind_directory(spike, to);
    group_.barrier();
    // With the new position, so that a resume resumes from here and not into the same samples.
    state_.spike = spikes_.state();
    saver_.save(state_, Saver::Occasion::periodic);
    local_.begin(-1);  // those there are belong to the steps that were left
  }

  void rewind_directory(int64_t spike, const fs::path& to) {
    const SkippedSamples& skipped = state_.skipped.back();
    std::string text =
        fmt::format("from step {} back to {}; samples {} to {} are left out ({} batches)", spike, to.string(),
                    skipped.first, skipped.first + skipped.count - 1, skipped.count / run_.batch.sequences);
    say("rewind " + text);
    auto aside = set_aside_later_steps(parts_.out, state_.step);
    if (aside) say(fmt::format("checkpoints after step {} were moved to {}", state_.step, aside->string()));
    if (progress_) progress_.emplace(state_.step + 1, run_.train.steps, lines_every(), parts_.lines);
    metrics_.reset();
    metrics_.emplace(parts_.out / "metrics.jsonl", state_.step);
    record_config(parts_.out, run_, state_.step + 1);
    recorded_checkpoint_ = state_.step;
    record_event({.kind = EventKind::rewind,
                  .step = spike,
                  .text = text,
                  .details = {{"to_step", state_.step},
                              {"checkpoint", to.string()},
                              {"first_skipped_sample", skipped.first},
                              {"skipped_samples", skipped.count},
                              {"rewinds", spikes_.state().rewinds}}});
  }

  bool is_diverged() const { return non_finite_.is_over_limit(); }
  bool is_range_test_over() const { return range_test_ && range_test_->is_over(); }

  void end() {
    bool finite = std::isfinite(result_.loss);
    // A loss that diverges is what a range test looks for.
    result_.outcome = is_range_test_over()             ? ExitCode::finished
                      : is_diverged() || !finite       ? ExitCode::non_finite
                      : state_.step < run_.train.steps ? ExitCode::stopped
                                                       : ExitCode::finished;
    saver_.finish();
    if (run_.checkpoint.at_end && saver_.newest().step != state_.step && state_.step > 0 && !is_diverged())
      save(Saver::Occasion::last);
    saver_.finish();
    if (result_.outcome != ExitCode::non_finite) saver_.confirm();
    saver_.finish();
    say_notes();
    result_.checkpoint = saver_.newest().path;
    if (result_.outcome == ExitCode::stopped)
      say(fmt::format(
          "stopped at step {}; the same command{} resumes from here{}", state_.step,
          run_.checkpoint.resume == "auto" ? "" : " with checkpoint.resume=auto",
          stop_file_exists(parts_.out) ? fmt::format(", once {} is removed", (parts_.out / kStopFile).string()) : ""));
    if (result_.outcome == ExitCode::non_finite && group_.leads()) end_non_finite();
    // The run must not resume from the local checkpoints, or the durable checkpoint holds the same step.
    if (result_.outcome != ExitCode::stopped || saver_.newest().step == state_.step) local_.discard();
    result_.step = state_.step;
    result_.unigram_entropy = parts_.dataset.unigram_entropy;
    if (range_test_) result_.rates = range_test_->points();
  }

  // Weights that a step has ruined may still be finite, and saved: the next start is to go on from before them.
  void end_non_finite() {
    Checkpoint good = saver_.newest_confirmed();
    say(
        fmt::format("stopped at step {}: loss or gradient norm not finite for {} step{} in a row\n"
                    "  hint: lower optimizer.lr or optimizer.clip, or lengthen optimizer.warmup",
                    state_.step, non_finite_.steps(), non_finite_.steps() == 1 ? "" : "s"));
    if (good.step < 0) return say("no checkpoint with a finite loss was written before");
    if (auto aside = set_aside_later_steps(parts_.out, good.step))
      say(fmt::format("checkpoints after step {} gave no finite loss and were moved to {}", good.step,
                      aside->string()));
    say(fmt::format("the last checkpoint that gave a finite loss is {}", good.path.string()));
    result_.checkpoint = good.path;
  }

  void say_notes() {
    for (const std::string& line : saver_.take_notes()) say(line);
    if (!group_.leads()) return;
    Checkpoint newest = saver_.newest();
    if (newest.step == recorded_checkpoint_ || newest.step < 0) return;
    recorded_checkpoint_ = newest.step;
    record_event({.kind = EventKind::checkpoint,
                  .step = newest.step,
                  .text = fmt::format("checkpoint of step {}", newest.step),
                  .details = {{"checkpoint", newest.path.string()}}});
  }

  // The leader's. What is written from here on would be lost, or begin another directory of that name.
  void require_directory() const {
    if (!metrics_ || metrics_->is_there() || parts_.lock.is_there()) return;
    throw RunError(parts_.out.string(), "was removed or moved while the run was writing there",
                   "what was trained since is lost; the same command begins anew");
  }

  // Nothing is told of that is not there.
  void require_results() const {
    require_directory();
    if (metrics_ && !metrics_->is_there())
      throw RunError((parts_.out / "metrics.jsonl").string(), "was removed or moved while the run was writing to it");
    std::error_code error;
    if (const fs::path& newest = result_.checkpoint; !newest.empty() && !fs::exists(newest, error) && !error)
      throw RunError(newest.string(), "was removed or moved: the run ends without a checkpoint of its last step");
  }

  // Of the run as a whole: the leader's.
  void record_event(const RunEvent& event) {
    if (!events_) return;
    if (std::optional<std::string> warning = events_->record(event)) say(*warning);
  }

  void record_outcome() {
    if (result_.outcome == ExitCode::finished)
      record_event({.kind = EventKind::finish,
                    .step = state_.step,
                    .text = fmt::format("all {} steps are done, loss {:.4f}", state_.step, result_.loss)});
    else if (result_.outcome == ExitCode::stopped)
      record_event({.kind = EventKind::stop, .step = state_.step, .text = "asked to stop; saved"});
    else
      record_event({.kind = EventKind::failure,
                    .step = state_.step,
                    .text = "loss or gradient norm not finite",
                    .details = {{"exit_code", number_of(result_.outcome)}}});
  }

  // A signal may reach one process before another, and the leader alone looks at the switches: all stop or save after
  // the same step.
  Switches::Asked asked_of_all(const StopRequest& stop) {
    if (group_.leads()) require_directory();
    Switches::Asked own = group_.leads() ? switches_.look() : Switches::Asked();
    if (own.save) switches_.save_begins();
    std::array<double, 2> asked{stop.asked() || own.stop ? 1.0 : 0.0, own.save ? 1.0 : 0.0};
    group_.sum(asked);
    return {.stop = asked[0] > 0, .save = asked[1] > 0};
  }

  StepPolicy policy_of(int64_t step) const {
    StepPolicy policy = spikes_.policy_of(step);
    // The config of a range test has a constant rate.
    if (range_test_) policy.rate_factor = range_test_->ramp().rate_of(step) / run_.optimizer.lr;
    return policy;
  }

  int64_t batch_tokens() const { return run_.batch.sequences * run_.batch.seq; }
  bool is_due(int64_t every) const { return every > 0 && state_.step % every == 0; }

  void begin_step() {
    position_.rank_status.begin_step(state_.step + 1);
    position_.heartbeat.note_times(trainer_.clock().last());
    if (group_.size() > 1 && is_due(kStragglerWindow)) look_for_stragglers();
    position_.watch.begin_step();
    position_.heartbeat.beat();
    faults_.before_step(state_.step + 1);
    trainer_.slow_down_input(faults_.slow_input_ms());
    trainer_.drill_next(faults_.drill_of(state_.step + 1));
    if (is_due(run_.train.check_microbatch_every))
      microbatches_.check(state_.step + 1, state_.samples, faults_.drill_of(state_.step + 1));
    if (is_due(run_.train.check_replicas_every)) replicas_.check_part(group_);
    saver_.check();
    say_notes();
    bool profiled = parts_.view.profile.step == state_.step + 1;
    int64_t every = run_.log.profile_every;
    bool traced = profiled || (every > 0 && (state_.step + 1) % every == 0);
    if (traced) {
      position_.watch.begin_other_work();
      trainer_.clock().leave_out(trainer_.steps_under_way() + 1);
    }
    Trace trace;
    OpObserver* spoiler = faults_.spoiled_op(state_.step + 1);
    if (spoiler) trainer_.bound().observe(spoiler);
    trainer_.begin_step(state_.step + 1, state_.samples, policy_of(state_.step + 1), traced ? &trace : nullptr);
    if (spoiler) trainer_.bound().observe(nullptr);
    faults_.slow_down(position_.rank_status);
    for (Event& event : trace) event.step = state_.step + 1;
    if (traced) keep_op_times(trace);
    if (profiled && group_.leads()) parts_.view.profile.take(trace, executor_);
    state_.step += 1;
    state_.validation_loss.reset();
    state_.samples += run_.batch.sequences;
    state_.tokens += batch_tokens();
  }

  void look_for_stragglers() {
    int program = stage_rank_of(trainer_.bound().program().mesh, group_.rank());
    std::optional<Straggler> slow = stragglers_.look(trainer_.clock().take_means(), program, group_);
    if (!slow || (slow->rank == slow_rank_ && slow_rank_told_ + 2 * kStragglerWindow >= state_.step)) return;
    note_slow_rank(slow->rank);
    say(fmt::format("step {}: {}", state_.step, slow->text));
    record_event({.kind = EventKind::straggler,
                  .step = state_.step,
                  .text = slow->text,
                  .details = {{"rank", slow->rank},
                              {"reason", std::string(name_of(slow->reason))},
                              {"own_seconds", slow->own},
                              {"peer_seconds", slow->others}}});
  }

  void note_slow_rank(int64_t rank) {
    slow_rank_ = rank;
    slow_rank_told_ = state_.step;
  }

  void keep_op_times(const Trace& trace) {
    traced_step_ = state_.step + 1;
    const Program& program = trainer_.bound().program();
    append_op_times(
        parts_.out,
        {.step = state_.step + 1, .rank = group_.rank(), .stage = stage_rank_of(program.mesh, group_.rank())}, trace);
  }

  void measure(StepMetrics& m) {
    std::optional<double> loss = trainer_.evaluate();
    result_.validation_loss = state_.validation_loss = loss;
    if (!loss) return;
    m.values.set(number::validation_loss, *loss);
    m.values.set(number::perplexity, std::exp(*loss));
    const std::optional<double>& bytes = parts_.dataset.validation_bytes_per_token;
    if (!bytes || *bytes <= 0) return;
    result_.bits_per_byte = *loss / (*bytes * std::numbers::ln2);
    m.values.set(number::bits_per_byte, *result_.bits_per_byte);
  }

  StepMetrics finish_step() {
    StepMetrics m = trainer_.finish_step();
    m.values.set(number::tokens, state_.tokens - (state_.step - m.step) * batch_tokens());
    m.values.set(number::model_flops, step_flops_);
    const double seconds = m[number::step_s];
    if (peak_flops_per_s_ && seconds > 0)
      m.values.set(number::mfu, step_flops_ / seconds / *peak_flops_per_s_);
    else
      m.values.set_unknown(number::mfu);
    if (!arenas_.empty()) m.values.set(number::arena_bytes_by_rank, std::exchange(arenas_, {}));
    result_.loss = m[number::loss];
    return m;
  }

  // One that fails is told of; the run has the one before, and durable ones.
  void save_locally() {
    if (!std::isfinite(result_.loss) || non_finite_.steps() > 0) return;
    state_.spike = spikes_.state();
    if (std::string failure = local_.save(state_); !failure.empty())
      say(fmt::format("step {}: no local checkpoint: {}", state_.step, failure));
  }

  void save(Saver::Occasion occasion) {
    if (group_.leads()) require_directory();
    state_.spike = spikes_.state();
    // The update of such a step is skipped, and the run may be about to end: it is to go on from before it.
    bool spoiled = occasion == Saver::Occasion::periodic && non_finite_.steps() > 0;
    if (std::isfinite(result_.loss) && !spoiled)
      saver_.save(state_, occasion);
    else
      say(fmt::format("step {}: no checkpoint is written: the {} is not finite", state_.step,
                      std::isfinite(result_.loss) ? "gradient norm" : "loss"));
  }

  const RankRunParts& parts_;
  const RunConfig& run_;
  Executor& executor_;
  HostGroup& group_;
  Position& position_;
  Trainer trainer_;
  LocalCheckpoints local_;
  FaultInjector faults_;
  Switches switches_{parts_.out};
  ModelFiles files_;
  ExpertFiles experts_ = ExpertFiles::as_listed;
  SourceModel source_ = SourceModel::same;
  Saver saver_;
  ReplicaCheck replicas_;
  MicrobatchCheck microbatches_;
  RunState state_;
  int64_t recorded_checkpoint_ = -1;  // the newest with an event
  std::optional<EventLog> events_;    // the leader's
  std::vector<int64_t> arenas_;       // of all ranks, until the first step has told of them
  // The scale is an f32.
  NonFiniteStreak non_finite_{run_.train.non_finite_steps, static_cast<float>(run_.train.loss_scale.minimum)};
  RepeatedSteps repeated_{run_.mesh.expert_capacity};
  SpikeWatch spikes_{run_.train.spike};
  StragglerWatch stragglers_;
  TensorWatch tensor_watch_;
  std::optional<RateRangeTest> range_test_ =
      parts_.view.ramp ? std::optional<RateRangeTest>(*parts_.view.ramp) : std::nullopt;
  DriftWatch drift_;
  double step_flops_ = 0;                        // of the model, over all ranks; the leader's, as the next
  std::optional<double> peak_flops_per_s_;       // of all devices; nothing where it is not known
  int64_t slow_rank_ = -1, slow_rank_told_ = 0;  // the last one named, at this step
  int64_t traced_step_ = 0;                      // the last one whose ops were timed
  std::optional<int64_t> rewind_from_;           // the step with the spike, until the run has gone back
  std::optional<MetricsFile> metrics_;           // the leader's
  std::optional<Progress> progress_;
  TrainResult result_;
};

}  // namespace

TrainResult run_rank(const RankRunParts& parts, Executor& executor, const RankContext& context,
                     const StopRequest& stop) {
  HostGroup group = context.transport ? HostGroup(*context.transport, kHostTag) : HostGroup();
  Position position(parts.out, context, TimeLimits(parts.run));
  Run rank(parts, executor, group, position, context.transport);
  try {
    TrainResult result = rank.finish_steps(stop);
    group.barrier();  // no process leaves before all have done their work
    position.heartbeat.finish();
    return result;
  } catch (const RunEnded&) {
    position.heartbeat.end();
    rank.rethrow_failed_save();
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
