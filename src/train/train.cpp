#include "train/train.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "base/units.h"
#include "ckpt/model_directory.h"
#include "ckpt/model_weights.h"
#include "comm/leader_first.h"
#include "comm/tags.h"
#include "models/model.h"
#include "run/fit.h"
#include "run/programs.h"
#include "run/resolve_spec.h"
#include "run/run_identity.h"
#include "run/run_target.h"
#include "train/data/dataset.h"
#include "train/faults/fault_injector.h"
#include "train/health/microbatch_check.h"
#include "train/health/stall_watch.h"
#include "train/health/stop.h"
#include "train/progress.h"
#include "train/rank_run.h"
#include "train/save/local_checkpoints.h"
#include "train/save/local_folder.h"
#include "train/save/resume.h"
#include "train/save/run_checkpoint.h"
#include "train/save/run_directory.h"
#include "train/source_model.h"
#include "train/world.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

int threads_of(const RunConfig& run, const Launch& launch, int ranks) {
  if (!launch.process) return threads_per_rank(run, ranks);
  return run.train.threads > 0 ? threads_per_rank(run, launch.ranks_on_host) : launch.cores;
}

// Rates that come from the directory of model.from are part of what the run is, wherever it goes on.
void keep_dropout_rates(RunConfig& run, const DropoutRates& rates) {
  if (!run.model.from || !rates.any()) return;
  run.model.hidden_dropout = rates.hidden;
  run.model.attention_dropout = rates.attention;
  run.model.embedding_dropout = rates.embedding;
}

// The Programs, if they fit in memory; nothing is allocated yet.
RunPrograms planned(const RunConfig& run, const RunShape& shape, const Executor& executor) {
  Target target = executor.target();
  if (find_fp8_recipe(run.train.precision) && !target.fp8)
    throw UserError(
        {.place = run.place_of("train.precision"),
         .got = fmt::format("{} on a device ({}) that does not run it", word_of(run.train.precision), target.name),
         .expected = "\"bf16\" or \"auto\", or a Hopper GPU (H100, H200)",
         .hint = "device = \"cpu\" emulates it, and `plan` has its memory and time on a GPU"});
  require_microbatch_check(run, shape.mesh, target);
  RunPrograms programs = build_programs(run, shape, target);
  if (auto room = executor.room()) require_room(run, shape, programs, target, {*room, executor.host_room()});
  return programs;
}

// Summary for the user before the first step.
std::string introduction(const ModelSpec& spec, const RunShape& shape, const Dataset& dataset,
                         const RunPrograms& programs) {
  int64_t most = 0;
  for (int stage = 0; stage < shape.pipeline.shape.ranks; ++stage) most = std::max(most, programs.arena_bytes(stage));
  int ranks = shape.mesh.world_size();
  return fmt::format("{}: {} parameters, {} training tokens, {} of memory{}", spec.architecture,
                     human_count(parameter_count(build_model(spec, {.seq = 1}, single_rank_mesh()))),
                     human_count(dataset.train_tokens), human(Bytes{most}),
                     ranks == 1 ? "" : fmt::format(" on each of {} ranks ({})", ranks, shape.mesh.text()));
}

// Of model.from, where its weights are still there: a run that goes on has them in its checkpoint.
std::optional<std::string> identity_of_source(const RunConfig& run) {
  if (!run.model.from) return "";
  try {
    return identity_of_weights(*run.model.from);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

RunIdentity identity_of(const RunConfig& run, const Dataset& dataset) {
  return {.tokenizer = dataset.tokenizer ? identity_of(*dataset.tokenizer) : "",
          .data = identity_of(dataset.train_files),
          .model = identity_of_source(run),
          .config = config_values(run)};
}

// All its steps are done, so nothing would come of what was changed: that must not look like success.
void refuse_changes_to_a_finished_run(const RunConfig& run, const ResumePoint& resume) {
  if ((resume.checkpoint.empty() && !resume.local) || resume.step < run.train.steps) return;
  std::vector<std::string> changes;
  for (const ConfigChange& change : resume.changes)
    if (change.affects == Affects::result) changes.push_back(change.text());
  if (changes.empty()) return;
  throw UserError(
      {.place = run.source,
       .got = fmt::format("{} has done step {} of {}, and the config has changed since: {}", resume.checkpoint.string(),
                          resume.step, run.train.steps, fmt::join(changes, "; ")),
       .expected = "a run with steps left to do",
       .hint = "raise train.steps, choose another --out, or go back to the config.toml in the run's directory"});
}

}  // namespace

TrainResult train(const RunConfig& given, const fs::path& out, const MakeExecutor& make_executor, const Launch& launch,
                  const TrainView& view, const std::vector<Fault>& faults) {
  RunConfig run = given;
  if (launch.process) require_world(run, launch.process->size(), "the launcher");
  std::vector<Fault> all_faults = faults_from_environment();
  all_faults.insert(all_faults.end(), faults.begin(), faults.end());
  ModelSpec spec = resolve_spec(run);
  RunShape shape = run_shape(run, spec);
  keep_dropout_rates(run, shape.dropout);
  int ranks = shape.mesh.world_size(), threads = threads_of(run, launch, ranks);
  auto say = [&](std::string_view line) {
    if (launch.leads() && view.verbosity != Verbosity::quiet) fmt::print("{}\n", printable(line, Newlines::kept));
  };

  std::optional<AbortOnThrow> abort_peers;
  if (launch.process) abort_peers.emplace(*launch.process);
  HostGroup processes = launch.process ? HostGroup(*launch.process, kHostTag) : HostGroup();
  // Before data is read and perhaps a tokenizer trained: does the model fit at all?
  RankContext planner{.rank =
                          launch.process ? launch.process->rank() : 0};  // which device it would have; no other rank
  RunPrograms programs = planned(run, shape, *make_executor(planner, threads));
  std::optional<Dataset> dataset;
  PreparedDirectory directory;
  RunIdentity identity;
  ResumePoint resume;
  std::chrono::milliseconds timeout = TimeLimits::wait_of(TimeLimits(run).in_other_work());
  leader_first(processes, timeout / 4, [&] {
    if (launch.leads()) directory = prepare_run_directory(out, view.supervisor);
    for (const std::string& note : directory.notes) say(note);
    keep_validation_split(run, out, say);
    if (launch.leads() && run.model.from && starts_afresh(run, out))
      for (const std::string& note : check_source_model(run, spec)) say(note);
    // Gone before the executor's own team has work.
    ThreadTeam readers(launch.process ? threads : static_cast<int>(run.train.threads));
    dataset = open_dataset(run, spec, readers, say, launch.leads() ? CacheCheck::contents : CacheCheck::sizes);
    if (launch.leads()) identity = identity_of(run, *dataset);
  });
  say(introduction(spec, shape, *dataset, programs));
  fs::path local_folder = processes.from_leader(launch.leads() ? local_folder_of(run, out).string() : "");
  if (!local_folder.empty()) remove_abandoned_folders(local_folder);
  {
    ThreadTeam readers(launch.process ? threads : static_cast<int>(run.train.threads));
    ResumeRequest request{run, out, identity, readers, say};
    std::optional<ResumePoint> local =
        find_local_resume_point(request, {local_folder, programs, 1, launch.process, say}, processes);
    resume = local ? std::move(*local) : find_resume_point(request, processes);
  }
  if (launch.leads()) refuse_changes_to_a_finished_run(run, resume);
  if (launch.leads() && run.model.from && resume.checkpoint.empty() && !resume.local)
    require_whole_weights(*run.model.from);

  RankRunParts parts{.run = run,
                     .out = out,
                     .lock = directory.lock,
                     .spec = spec,
                     .dropout = shape.dropout,
                     .dataset = *dataset,
                     .programs = programs,
                     .identity = identity,
                     .resume = resume,
                     .local_folder = local_folder,
                     .faults = all_faults,
                     .lines = launch.process ? Lines::plain : Lines::as_found,
                     .processes_on_host = launch.process ? launch.ranks_on_host : 1,
                     .view = view};
  StopRequest stop;
  TrainResult result;
  run_ranks(launch, {ranks, timeout}, [&](const RankContext& context) {
    std::unique_ptr<Executor> executor = make_executor(context, threads);
    TrainResult own = run_rank(parts, *executor, context, stop);
    if (!launch.process && context.rank != 0) return;
    result = own;
  });
  return result;
}

}  // namespace sextant
