#include "train/save/saver.h"

#include <algorithm>
#include <utility>

#include "base/threads.h"
#include "ckpt/model_directory.h"
#include "ckpt/model_weights.h"
#include "comm/ranks.h"
#include "comm/tags.h"
#include "run/programs.h"
#include "train/health/stall_watch.h"
#include "train/save/finite_check.h"
#include "train/save/retention.h"

namespace sextant {

bool saves_in_background(const RunConfig& run) {
  return run.checkpoint.background && run.checkpoint.every > 0;
}

Saver::Saver(const Parts& parts) : parts_(parts) {
  if (parts.transport) group_ = HostGroup(*parts.transport, kSaveTag);
  if (saves_in_background(parts.run)) snapshot_ = std::make_unique<Snapshot>(parts.values);
}

Saver::~Saver() {
  for (std::thread* thread : {&writing_, &pruning_})
    if (thread->joinable()) thread->join();
}

void Saver::note(std::string line) {
  if (!group_.leads()) return;
  std::lock_guard lock(mutex_);
  notes_.push_back(std::move(line));
}

std::vector<std::string> Saver::take_notes() {
  std::lock_guard lock(mutex_);
  return std::exchange(notes_, {});
}

Checkpoint Saver::newest() {
  std::lock_guard lock(mutex_);
  return newest_;
}

Checkpoint Saver::newest_confirmed() {
  std::lock_guard lock(mutex_);
  return confirmed_;
}

void Saver::resumed_from(const Checkpoint& checkpoint) {
  std::lock_guard lock(mutex_);
  newest_ = checkpoint;
}

void Saver::rewound_to(const Checkpoint& checkpoint) {
  std::lock_guard lock(mutex_);
  newest_ = confirmed_ = checkpoint;
}

void Saver::prune(const CheckpointSection& keep) {
  try {
    prune_run(parts_.out, keep, newest_confirmed().step);
  } catch (const std::runtime_error& error) {
    note(fmt::format("an old checkpoint could not be removed: {}", error.what()));
  }
}

std::string Saver::write_or_say_why(const Job& job, const StateView& values) {
  MovingView moving(values, parts_.rank_status);
  Optimizer optimizer = optimizer_of(parts_.run);
  FullDiskView on_full_disk(moving, job.place);
  const StateView& source = parts_.faults.disk_is_full(job.state.step) ? static_cast<const StateView&>(on_full_disk)
                                                                       : static_cast<const StateView&>(moving);
  CheckpointContent content{source,    parts_.spec, optimizer,      parts_.tokenizer, parts_.files,
                            job.state, job.dtype,   parts_.dropout, parts_.experts};
  std::string failure = save_run_checkpoint(job.place, content, group_);
  if (failure.empty()) return failure;
  if (group_.leads() && parts_.run.checkpoint.keep > 0) {
    CheckpointSection fewer = parts_.run.checkpoint;
    fewer.keep = std::max<int64_t>(1, fewer.keep - 1);
    prune(fewer);
  }
  return save_run_checkpoint(job.place, content, group_);
}

// The type that the config asks for, or f32 where a weight would become infinite in it: the run's work is not lost for
// it.
FileDType Saver::dtype_that_holds(const StateView& values, std::string_view where) {
  FileDType dtype = file_dtype_of(parts_.run.checkpoint.dtype);
  if (dtype == FileDType::f32) return dtype;
  std::string tensor = group_.first_text(first_overflow(values, parts_.spec, dtype));
  if (tensor.empty()) return dtype;
  note(fmt::format("{}: the checkpoint is in f32, not {}: {}, which would become infinite", where,
                   name_of(parts_.run.checkpoint.dtype), tensor));
  return FileDType::f32;
}

void Saver::write(const Job& asked, const StateView& values) {
  Job job = asked;
  std::string where = fmt::format("step {}", job.state.step);
  std::string tensor = group_.first_text(first_non_finite(values));
  if (!tensor.empty()) {
    std::string what = fmt::format("no checkpoint is written: {} is not finite", tensor);
    if (job.occasion == Occasion::last) throw RunError(where, what, "", ExitCode::non_finite);
    return note(fmt::format("{}: {}", where, what));
  }
  job.dtype = dtype_that_holds(values, where);
  std::string failure = write_or_say_why(job, values);
  if (failure.empty()) {
    std::lock_guard lock(mutex_);
    newest_ = {job.state.step, job.place};
    unconfirmed_ = true;
    return;
  }
  auto older = group_.leads() ? latest_checkpoint(parts_.out, kRunStateFile) : std::nullopt;
  std::string stands = group_.from_leader(older ? older->path.string() : "");
  if (job.occasion == Occasion::last || stands.empty())
    throw RunError(where, fmt::format("the checkpoint could not be written: {}", failure));
  note(
      fmt::format("{}: the checkpoint could not be written: {}\n  the run goes on; {} stands, and the next one is "
                  "tried in {} steps",
                  where, failure, stands, parts_.run.checkpoint.every));
}

void Saver::save(const RunState& state, Occasion occasion) {
  finish();
  Job job{.place = checkpoint_path(parts_.out, state.step), .state = state, .occasion = occasion};
  if (!snapshot_) return write(job, parts_.values);
  snapshot_->take();
  writing_ = start_thread("a save in the background", [this, job] {
    try {
      write(job, *snapshot_);
    } catch (const std::exception& error) {
      error_ = std::current_exception();
      failed_ = true;
      // The other ranks may be waiting for this one.
      if (parts_.transport)
        parts_.transport->abort(
            fmt::format("rank {} could not save step {}: {}", group_.rank(), job.state.step, error.what()),
            exit_code_of(error));
    }
  });
}

void Saver::check() {
  if (failed_) finish();
}

void Saver::confirm() {
  if (!group_.leads() || !unconfirmed_.exchange(false)) return;
  {
    std::lock_guard lock(mutex_);
    confirmed_ = newest_;
  }
  if (parts_.run.checkpoint.keep == 0) return;
  if (pruning_.joinable()) pruning_.join();
  if (!snapshot_) return prune(parts_.run.checkpoint);
  pruning_ = start_thread("pruning in the background",
                          [this] { prune(parts_.run.checkpoint); });  // to remove hundreds of GB takes its time
}

void Saver::finish() {
  for (std::thread* thread : {&writing_, &pruning_})
    if (thread->joinable()) thread->join();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace sextant
