#include "train/train.h"

#include "base/error.h"
#include "base/files.h"
#include "base/units.h"
#include "ckpt/checkpoints.h"
#include "ckpt/model_directory.h"
#include "ckpt/model_weights.h"
#include "ckpt/staged_directory.h"
#include "config/load.h"
#include "models/model.h"
#include "plan/programs.h"
#include "train/dataset.h"
#include "train/progress.h"
#include "train/run_checkpoint.h"
#include "train/stop.h"
#include "train/trainer.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

void refuse_many_ranks(const RunConfig& run, const Mesh& mesh) {
  if (mesh.world_size() == 1) return;
  throw UserError({.place = run.place_of(run.mesh.dp > 1 ? "mesh.dp" : "mesh.tp"),
                   .got = fmt::format("the mesh has {} ranks", mesh.world_size()),
                   .expected = "one rank: training on several is not supported yet",
                   .hint = "`sextant plan` and `sextant explain` show what each rank would do"});
}

void prepare_directory(const fs::path& out) {
  std::error_code error;
  fs::create_directories(out, error);
  if (error) throw RunError(out.string(), fmt::format("cannot create the run's directory: {}", error.message()));
  recover_directory(out);
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

class Run {
 public:
  Run(const RunConfig& run, const fs::path& out, Executor& executor, const ModelSpec& spec, const Dataset& dataset,
      const RunPrograms& programs)
      : run_(run), out_(out), spec_(spec), dataset_(dataset), trainer_(run, programs, dataset, executor) {}

  RunState begin() {
    if (auto from = resume_from(run_, out_)) {
      state_ = load_run_checkpoint(*from, trainer_.bound(), spec_);
      result_.checkpoint = *from;
      fmt::print("resuming from {} (step {})\n", from->string(), state_.step);
    } else if (run_.model.from) {
      load_weights(trainer_.bound(), spec_, WeightsReader(*run_.model.from));
      fmt::print("starting from the weights of {}\n", *run_.model.from);
    } else {
      initialize_weights(trainer_.bound(), static_cast<uint64_t>(run_.train.seed));
    }
    return state_;
  }

  TrainResult finish_steps() {
    StopRequest stop;
    MetricsFile metrics(out_ / "metrics.jsonl", state_.step);
    Progress progress(state_.step + 1, run_.train.steps, run_.train.log_every);
    if (state_.step >= run_.train.steps)
      progress.say(fmt::format("nothing to do: all {} steps are done; a larger train.steps goes on", run_.train.steps));
    while (state_.step < run_.train.steps && !stop.asked()) one_step(metrics, progress);
    result_.interrupted = state_.step < run_.train.steps;
    if (saved_step_ != state_.step && state_.step > 0) save();
    if (result_.interrupted)
      progress.say(fmt::format("stopped at step {}; the same command resumes from here", state_.step));
    result_.step = state_.step;
    result_.unigram_entropy = dataset_.unigram_entropy;
    return result_;
  }

  void mark_saved() { saved_step_ = state_.step; }

 private:
  void one_step(MetricsFile& metrics, Progress& progress) {
    StepMetrics m = trainer_.run_step(state_.step + 1, state_.samples);
    state_.step += 1;
    state_.samples += run_.batch.sequences;
    state_.tokens += run_.batch.sequences * run_.batch.seq;
    m.tokens = state_.tokens;
    bool last = state_.step == run_.train.steps;
    if (run_.train.eval_every > 0 && (last || state_.step % run_.train.eval_every == 0))
      m.validation_loss = result_.validation_loss = trainer_.evaluate();
    metrics.append(m);
    progress.step(m);
    result_.loss = m.loss;
    if (run_.checkpoint.every > 0 && state_.step % run_.checkpoint.every == 0) save();
  }

  void save() {
    result_.checkpoint = checkpoint_path(out_, state_.step);
    save_run_checkpoint(result_.checkpoint, {trainer_.bound(), spec_, dataset_.tokenizer.get(), state_});
    if (run_.checkpoint.keep > 0) prune_checkpoints(out_, run_.checkpoint.keep, kRunStateFile);
    mark_saved();
  }

  const RunConfig& run_;
  const fs::path& out_;
  const ModelSpec& spec_;
  const Dataset& dataset_;
  Trainer trainer_;
  RunState state_;
  int64_t saved_step_ = -1;
  TrainResult result_;
};

}  // namespace

TrainResult train(const RunConfig& run, const fs::path& out, Executor& executor) {
  ModelSpec spec = resolve_spec(run);
  RunShape shape = run_shape(run, spec);
  refuse_many_ranks(run, shape.mesh);
  prepare_directory(out);
  auto say = [](std::string_view line) { fmt::print("{}\n", line); };

  Dataset dataset = [&] {
    ThreadTeam readers(static_cast<int>(run.train.threads));  // gone before the executor's own team has work
    return open_dataset(run, spec, readers, say);
  }();
  RunPrograms programs = build_programs(run, shape, executor.target());
  say(fmt::format("{}: {} parameters, {} training tokens, {} of memory", spec.architecture,
                  human_count(parameter_count(build_model(spec, {.seq = 1}, shape.mesh))), human_count(dataset.train_tokens),
                  human(Bytes{programs.arena_bytes})));
  write_file_atomically(out / "config.toml", config_toml(run));

  Run work(run, out, executor, spec, dataset, programs);
  if (work.begin().step > 0) work.mark_saved();
  return work.finish_steps();
}

}  // namespace sextant
