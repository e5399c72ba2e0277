#include "train/saver.h"

#include "base/threads.h"
#include "ckpt/checkpoints.h"
#include "ckpt/model_directory.h"
#include "comm/tags.h"

namespace sextant {

bool saves_in_background(const RunConfig& run) { return run.checkpoint.background && run.checkpoint.every > 0; }

Saver::Saver(const Parts& parts) : parts_(parts) {
  if (parts.transport) crew_ = Crew(*parts.transport, kSaveTag);
  if (saves_in_background(parts.run)) snapshot_ = std::make_unique<Snapshot>(parts.values);
}

Saver::~Saver() {
  if (writing_.joinable()) writing_.join();
}

void Saver::write(const std::filesystem::path& place, const RunState& state, const StateView& values) {
  save_run_checkpoint(place, {values, parts_.spec, parts_.tokenizer, state}, crew_);
  if (crew_.leads() && parts_.run.checkpoint.keep > 0) prune_checkpoints(parts_.out, parts_.run.checkpoint.keep, kRunStateFile);
}

std::filesystem::path Saver::save(const RunState& state) {
  finish();
  std::filesystem::path place = checkpoint_path(parts_.out, state.step);
  if (!snapshot_) {
    write(place, state, parts_.values);
    return place;
  }
  snapshot_->take();
  writing_ = start_thread("a save in the background", [this, place, state] {
    try {
      write(place, state, *snapshot_);
    } catch (const std::exception& error) {
      error_ = std::current_exception();
      failed_ = true;
      // The other ranks wait for this one's part.
      if (parts_.transport)
        parts_.transport->abort(fmt::format("rank {} could not save step {}: {}", crew_.rank(), state.step, error.what()));
    }
  });
  return place;
}

void Saver::check() {
  if (failed_) finish();
}

void Saver::finish() {
  if (writing_.joinable()) writing_.join();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace sextant
