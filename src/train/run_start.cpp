#include "train/run_start.h"

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ckpt/model_weights.h"
#include "run/programs.h"
#include "run/run_identity.h"
#include "train/monitors/monitors.h"
#include "train/save/finite_check.h"
#include "train/save/run_directory.h"
#include "train/source_model.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

void resume_from_local(RankServices& rank, const LocalPoint& local, const fs::path& durable) {
  rank.state = local.state;
  load_local_copy(local.copies[static_cast<size_t>(rank.group.rank())], rank.trainer.bound());
  if (auto step = step_of_checkpoint(durable)) rank.saver.resumed_from({*step, durable});
}

void resume_from(RankServices& rank, const fs::path& checkpoint) {
  rank.state = load_run_checkpoint(checkpoint, rank.trainer.bound(), rank.parts.spec, optimizer_of(rank.run));
  rank.saver.resumed_from({rank.state.step, checkpoint});
}

SourceModel load_state(RankServices& rank) {
  const fs::path& from = rank.parts.resume.checkpoint;
  fs::path source = !from.empty() ? from : fs::path(rank.run.model.from.value_or(""));
  if (rank.group.leads() && !source.empty()) rank.files = files_to_keep(source, rank.parts.dataset.tokenizer.get());
  if (!source.empty()) rank.experts = expert_files_in(WeightsReader(source), rank.parts.spec);
  SourceModel model = SourceModel::same;
  if (const std::optional<LocalPoint>& local = rank.parts.resume.local)
    resume_from_local(rank, *local, from);
  else if (!from.empty())
    resume_from(rank, from);
  else if (rank.run.model.from)
    model = load_source_model(rank.trainer.bound(), rank.run, rank.parts.spec);
  else
    initialize_weights(rank.trainer.bound(), static_cast<uint64_t>(rank.run.train.seed));
  rank.save_log.begin();
  rank.record_checksums();
  return model;
}

void require_finite(RankServices& rank, const std::string& source) {
  if (source.empty()) return;
  std::string tensor = rank.group.first_text(first_non_finite(rank.trainer.bound()));
  if (!tensor.empty())
    throw RunError(source, fmt::format("{} is not finite", tensor),
                   "start from other weights, or an earlier checkpoint", ExitCode::non_finite);
}

void check_state(RankServices& rank) {
  const ResumePoint& resume = rank.parts.resume;
  try {
    require_finite(rank, resume.local                ? rank.parts.local_folder.string()
                         : resume.checkpoint.empty() ? rank.run.model.from.value_or("")
                                                     : resume.checkpoint.string());
    if (rank.run.train.check_replicas_every > 0) rank.replicas.check_all();
  } catch (const RunError&) {
    // Copies that were taken of a state which was wrong already: the next start resumes from before them.
    if (resume.local) discard_local_copies(rank.parts.local_folder, -1);
    throw;
  }
}

void report_resume(RankServices& rank, const fs::path& source) {
  const RunIdentity& identity = rank.parts.identity;
  const ResumePoint& resume = rank.parts.resume;
  std::string origin = fmt::format("resuming from {}{} (step {})", resume.local ? "local checkpoints in " : "",
                                   source.string(), rank.state.step);
  rank.output.say(origin);
  if (rank.state.step < rank.run.train.steps)
    rank.output.record({.kind = EventKind::resume,
                        .step = rank.state.step + 1,
                        .text = origin,
                        .details = {{"checkpoint", source.string()},
                                    {"ranks", rank.group.size()},
                                    {"tokenizer", identity.tokenizer},
                                    {"data", identity.data}}});
  std::vector<std::string> changes;
  for (const ConfigChange& change : resume.changes) changes.push_back(change.text());
  if (!changes.empty()) {
    std::string text = fmt::format("config changed since then: {}", fmt::join(changes, "; "));
    rank.output.say(text);
    rank.output.record({.kind = EventKind::config_change,
                        .step = rank.state.step + 1,
                        .text = text,
                        .details = {{"changes", changes}}});
  }
  if (auto aside = set_aside_later_steps(rank.parts.out, rank.state.step))
    rank.output.say(fmt::format("checkpoints after step {} were moved to {}", rank.state.step, aside->string()));
}

void report_start(RankServices& rank, SourceModel model) {
  const std::optional<std::string>& from = rank.run.model.from;
  if (from)
    rank.output.say(fmt::format("starting from the weights of {}{}", *from,
                                model == SourceModel::upcycled ? ", every expert as its MLP" : ""));
  rank.output.record(
      {.kind = EventKind::start,
       .step = 1,
       .text = from ? fmt::format("starting from the weights of {}", *from) : "starting from random weights",
       .details = {{"ranks", rank.group.size()},
                   {"tokenizer", rank.parts.identity.tokenizer},
                   {"data", rank.parts.identity.data}}});
}

// The leader's.
void begin_directory(RankServices& rank, SourceModel model) {
  const ResumePoint& resume = rank.parts.resume;
  const fs::path& source = resume.local ? rank.parts.local_folder : resume.checkpoint;
  if (source.empty())
    report_start(rank, model);
  else
    report_resume(rank, source);
  record_config(rank.parts.out, rank.run, rank.state.step + 1);
  if (rank.parts.view.on_begin)
    rank.peak_flops_per_s = rank.parts.view.on_begin(resume.checkpoint.empty() ? Beginning::fresh : Beginning::resumed);
}

}  // namespace

void start_run(RankServices& rank) {
  SourceModel model = load_state(rank);
  check_state(rank);
  rank.state.identity = rank.parts.identity;
  rank.arenas.assign(static_cast<size_t>(rank.group.size()), 0);
  rank.arenas[static_cast<size_t>(rank.group.rank())] = rank.trainer.arena_bytes();
  rank.group.sum(rank.arenas);
  rank.group.barrier();
  if (rank.group.leads()) begin_directory(rank, model);
  rank.group.barrier();
  rank.local.begin(rank.parts.resume.local ? rank.state.step : -1);
  rank.monitors = make_monitors(rank, rank.parts.view.monitors);
  for (const auto& monitor : rank.monitors) monitor->restore(rank.state);
  rank.output.begin(rank.state.step);
}

}  // namespace sextant
