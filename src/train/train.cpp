#include "train/train.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/units.h"
#include "ckpt/checkpoints.h"
#include "ckpt/model_directory.h"
#include "ckpt/model_weights.h"
#include "ckpt/staged_directory.h"
#include "comm/tags.h"
#include "config/load.h"
#include "models/model.h"
#include "plan/fit.h"
#include "plan/programs.h"
#include "train/dataset.h"
#include "train/fault.h"
#include "train/heartbeat.h"
#include "train/leader_first.h"
#include "train/progress.h"
#include "train/run_checkpoint.h"
#include "train/saver.h"
#include "train/stop.h"
#include "train/trainer.h"
#include "train/world.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

void prepare_directory(const fs::path& out) {
  std::error_code error;
  fs::create_directories(out, error);
  if (error) throw RunError(out.string(), fmt::format("cannot create the run's directory: {}", error.message()));
  recover_directory(out);
  std::vector<std::string> words = last_words(out);
  for (std::string& line : words) line = printable(line);
  if (!words.empty()) fmt::print("the last run here did not end well:\n  {}\n", fmt::join(words, "\n  "));
  forget_heartbeats(out);
}

// The checkpoint to go on from: what checkpoint.resume names, or the newest of this run.
std::optional<fs::path> resume_from(const RunConfig& run, const fs::path& out) {
  auto latest = latest_checkpoint(out, kRunStateFile);
  if (run.checkpoint.resume == "auto") return latest ? std::optional(latest->path) : std::nullopt;
  // Two runs in one directory would prune each other's checkpoints.
  if (latest && run.checkpoint.resume == "never")
    throw UserError({.place = out.string(), .got = fmt::format("already holds a run, at step {}", latest->step),
                     .expected = "an empty directory for a run that starts afresh",
                     .hint = "choose another --out, or remove this one"});
  if (run.checkpoint.resume == "never") return std::nullopt;
  return find_model_directory(run.checkpoint.resume);
}

// Where one rank stands, for itself and for those who look on.
struct Position {
  Position(const fs::path& out, const RankSeat& seat)
      : whereabouts(seat.transport ? seat.transport->whereabouts() : alone), heartbeat(out, seat.rank, whereabouts) {}

  Whereabouts alone;  // when there is no transport to keep it
  Whereabouts& whereabouts;
  Heartbeat heartbeat;
};

// The run as one rank lives it. Only the leader prints and writes metrics; all take part in steps, evaluations and saves.
class Run {
 public:
  struct Parts {
    const RunConfig& run;
    const fs::path& out;
    const ModelSpec& spec;
    const Dataset& dataset;
    const RunPrograms& programs;
    Fault fault;
    Lines lines;
    const Profile& profile;
  };
  Run(const Parts& parts, Executor& executor, Crew& crew, Position& position, Transport* transport)
      : parts_(parts), run_(parts.run), executor_(executor), crew_(crew), position_(position),
        trainer_({parts.run, parts.programs, parts.dataset, executor, crew}),
        saver_({parts.run, parts.out, parts.spec, parts.dataset.tokenizer.get(), trainer_.bound(), transport}) {}

  // Where a save in the background has ended the run, that is the cause.
  void rethrow_failed_save() { saver_.check(); }

  TrainResult finish_steps(const StopRequest& stop) {
    begin();
    std::optional<MetricsFile> metrics;
    std::optional<Progress> progress;
    if (crew_.leads()) {
      metrics.emplace(parts_.out / "metrics.jsonl", state_.step);
      progress.emplace(state_.step + 1, run_.train.steps, run_.train.log_every, parts_.lines);
    }
    auto say = [&](const std::string& line) {
      if (progress) progress->say(line);
    };
    if (state_.step >= run_.train.steps)
      say(fmt::format("nothing to do: all {} steps are done; a larger train.steps goes on", run_.train.steps));
    auto note = [&](const StepMetrics& m) {
      if (metrics) metrics->append(m);
      if (progress) progress->step(m);
    };
    while (state_.step < run_.train.steps && !all_stop(stop)) {
      begin_step();
      // Where something looks at the weights, or nothing follows, the device is waited for; else the host stays ahead of it.
      bool pause = is_due(run_.train.eval_every) || is_due(run_.checkpoint.every) || state_.step == run_.train.steps;
      while (trainer_.steps_under_way() > (pause ? 1 : trainer_.steps_ahead())) note(finish_step());
      if (!pause) continue;
      StepMetrics m = finish_step();
      if (run_.train.eval_every > 0 && (is_due(run_.train.eval_every) || state_.step == run_.train.steps))
        m.validation_loss = result_.validation_loss = trainer_.evaluate();
      note(m);
      if (is_due(run_.checkpoint.every)) save();
    }
    while (trainer_.steps_under_way() > 0) note(finish_step());
    result_.interrupted = state_.step < run_.train.steps;
    if (run_.checkpoint.at_end && saved_step_ != state_.step && state_.step > 0) save();
    saver_.finish();
    if (result_.interrupted) say(fmt::format("stopped at step {}; the same command resumes from here", state_.step));
    result_.step = state_.step;
    result_.unigram_entropy = parts_.dataset.unigram_entropy;
    return result_;
  }

 private:
  void begin() {
    // The leader looks, so that all go on from the same place.
    std::string found;
    if (crew_.leads())
      if (auto from = resume_from(run_, parts_.out)) found = from->string();
    fs::path from = crew_.from_leader(found);
    if (!from.empty()) {
      state_ = load_run_checkpoint(from, trainer_.bound(), parts_.spec);
      result_.checkpoint = from;
      saved_step_ = state_.step;
      if (crew_.leads()) fmt::print("resuming from {} (step {})\n", printable(from.string()), state_.step);
    } else if (run_.model.from) {
      load_weights(trainer_.bound(), parts_.spec, WeightsReader(*run_.model.from));
      if (crew_.leads()) fmt::print("starting from the weights of {}\n", printable(*run_.model.from));
    } else {
      initialize_weights(trainer_.bound(), static_cast<uint64_t>(run_.train.seed));
    }
  }

  // A signal may reach one process before another: all stop after the same step.
  bool all_stop(const StopRequest& stop) {
    double asked = stop.asked() ? 1 : 0;
    crew_.sum(std::span(&asked, 1));
    return asked > 0;
  }

  bool is_due(int64_t every) const { return every > 0 && state_.step % every == 0; }

  void begin_step() {
    position_.whereabouts.begin_step(state_.step + 1);
    position_.heartbeat.beat();
    strike(parts_.fault, crew_.rank(), state_.step + 1);
    saver_.check();
    bool traced = parts_.profile.step == state_.step + 1;
    Trace trace;
    trainer_.begin_step(state_.step + 1, state_.samples, traced ? &trace : nullptr);
    for (Event& event : trace) event.step = state_.step + 1;
    if (traced && crew_.leads()) parts_.profile.take(trace, executor_);
    state_.step += 1;
    state_.samples += run_.batch.sequences;
    state_.tokens += run_.batch.sequences * run_.batch.seq;
  }

  StepMetrics finish_step() {
    StepMetrics m = trainer_.finish_step();
    m.tokens = state_.tokens - (state_.step - m.step) * run_.batch.sequences * run_.batch.seq;
    result_.loss = m.loss;
    return m;
  }

  void save() {
    result_.checkpoint = saver_.save(state_);
    saved_step_ = state_.step;
  }

  const Parts& parts_;
  const RunConfig& run_;
  Executor& executor_;
  Crew& crew_;
  Position& position_;
  Trainer trainer_;
  Saver saver_;
  RunState state_;
  int64_t saved_step_ = -1;
  TrainResult result_;
};

// One rank from its first message to its last.
TrainResult run_rank(const Run::Parts& parts, Executor& executor, const RankSeat& seat, const StopRequest& stop) {
  Crew crew = seat.transport ? Crew(*seat.transport, kHostTag) : Crew();
  Position position(parts.out, seat);
  Run rank(parts, executor, crew, position, seat.transport);
  try {
    TrainResult result = rank.finish_steps(stop);
    crew.barrier();  // no process leaves before all have done their work
    position.heartbeat.finish();
    return result;
  } catch (const RunEnded&) {
    position.heartbeat.end();
    rank.rethrow_failed_save();
    throw;
  } catch (const std::exception& error) {
    position.heartbeat.fail(error.what());
    // Here, where its memory still is: messages may be on their way into it.
    if (seat.transport) seat.transport->abort(fmt::format("rank {} ended with: {}", seat.rank, error.what()));
    throw;
  }
}

int threads_of(const RunConfig& run, const Launch& launch, int ranks) {
  if (!launch.process) return threads_per_rank(run, ranks);
  return run.train.threads > 0 ? threads_per_rank(run, launch.ranks_on_host) : launch.cores;
}

// The Programs, if there is room for them; nothing is allocated yet.
RunPrograms planned(const RunConfig& run, const RunShape& shape, const Executor& executor) {
  Target target = executor.target();
  RunPrograms programs = build_programs(run, shape, target);
  if (auto room = executor.room()) require_room(run, shape, programs, target, *room);
  return programs;
}

// What a person reads before the first step.
std::string introduction(const ModelSpec& spec, const RunShape& shape, const Dataset& dataset, const RunPrograms& programs) {
  int64_t most = 0;
  for (int stage = 0; stage < shape.pipeline.shape.ranks; ++stage) most = std::max(most, programs.arena_bytes(stage));
  int ranks = shape.mesh.world_size();
  return fmt::format("{}: {} parameters, {} training tokens, {} of memory{}", spec.architecture,
                     human_count(parameter_count(build_model(spec, {.seq = 1}, single_rank_mesh()))),
                     human_count(dataset.train_tokens), human(Bytes{most}),
                     ranks == 1 ? "" : fmt::format(" on each of {} ranks ({})", ranks, shape.mesh.text()));
}

}  // namespace

std::chrono::milliseconds timeout_of(const RunConfig& run) {
  // Telling the others, and ending those that do not listen, takes about a second: the run is to be over in time.
  constexpr double kToEnd = 1.5;
  double wait_s = std::max(run.train.timeout_s / 2, run.train.timeout_s - kToEnd);
  return std::chrono::milliseconds(static_cast<int64_t>(wait_s * 1000));
}

TrainResult train(const RunConfig& run, const fs::path& out, const MakeExecutor& make_executor, const Launch& launch,
                  const Profile& profile) {
  if (launch.process) require_world(run, launch.process->size(), "the launcher");
  Fault fault = fault_from_environment();
  ModelSpec spec = resolve_spec(run);
  RunShape shape = run_shape(run, spec);
  int ranks = shape.mesh.world_size(), threads = threads_of(run, launch, ranks);
  auto say = [&](std::string_view line) {
    if (launch.leads()) fmt::print("{}\n", printable(line));
  };

  std::optional<AbortOnThrow> tell_others;
  if (launch.process) tell_others.emplace(*launch.process);
  Crew processes = launch.process ? Crew(*launch.process, kHostTag) : Crew();
  // Before data is read and perhaps a tokenizer trained: is there room for the model at all?
  RankSeat planner{.rank = launch.process ? launch.process->rank() : 0};  // which device it would have; nobody to talk to
  RunPrograms programs = planned(run, shape, *make_executor(planner, threads));
  std::optional<Dataset> dataset;
  leader_first(processes, timeout_of(run) / 4, [&] {
    if (launch.leads()) prepare_directory(out);
    // Gone before the executor's own team has work.
    ThreadTeam readers(launch.process ? threads : static_cast<int>(run.train.threads));
    dataset = open_dataset(run, spec, readers, say);
  });
  say(introduction(spec, shape, *dataset, programs));
  if (launch.leads()) write_file_atomically(out / "config.toml", config_toml(run));

  Run::Parts parts{run, out, spec, *dataset, programs, fault, launch.process ? Lines::plain : Lines::as_found, profile};
  StopRequest stop;
  TrainResult result;
  run_ranks(launch, {ranks, timeout_of(run)}, [&](const RankSeat& seat) {
    std::unique_ptr<Executor> executor = make_executor(seat, threads);
    TrainResult own = run_rank(parts, *executor, seat, stop);
    if (seat.rank == 0) result = own;
  });
  return result;
}

}  // namespace sextant
