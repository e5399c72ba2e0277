#include "train/run_rewind.h"

#include <fmt/format.h>

#include <vector>

#include "run/programs.h"
#include "train/save/resume.h"
#include "train/save/rewind.h"
#include "train/save/run_directory.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

// The leader's.
void rewind_directory(RankServices& rank, int64_t step, const fs::path& to) {
  const SkippedSamples& skipped = rank.state.skipped.back();
  std::string text =
      fmt::format("from step {} back to {}; samples {} to {} are left out ({} batches)", step, to.string(),
                  skipped.first, skipped.first + skipped.count - 1, skipped.count / rank.run.batch.sequences);
  rank.output.say("rewind " + text);
  if (auto aside = set_aside_later_steps(rank.parts.out, rank.state.step))
    rank.output.say(fmt::format("checkpoints after step {} were moved to {}", rank.state.step, aside->string()));
  rank.output.begin(rank.state.step);
  record_config(rank.parts.out, rank.run, rank.state.step + 1);
  rank.output.record({.kind = EventKind::rewind,
                      .step = step,
                      .text = text,
                      .details = {{"to_step", rank.state.step},
                                  {"checkpoint", to.string()},
                                  {"first_skipped_sample", skipped.first},
                                  {"skipped_samples", skipped.count},
                                  {"rewinds", rank.state.spike.rewinds}}});
}

}  // namespace

bool rewind_run(RankServices& rank, int64_t step) {
  while (rank.trainer.steps_under_way() > 0) rank.trainer.finish_step();
  rank.position.watch.begin_other_work();
  rank.saver.finish();
  rank.report(rank.save_log.take());
  std::vector<fs::path> wanted;
  if (rank.group.leads()) wanted = rewind_candidates(rank.parts.out, step, rank.run.train.spike.rewind_steps);
  fs::path to = first_whole(wanted, rank.group);
  if (to.empty()) {
    rank.output.say(fmt::format("step {}: no checkpoint to go back to", step));
    return false;
  }
  const int64_t sequences = rank.run.batch.sequences, read = rank.state.samples - (rank.state.step - step) * sequences;
  for (const auto& monitor : rank.monitors) monitor->keep(rank.state);
  const int64_t rewinds = rank.state.spike.rewinds + 1;
  RunState found = load_run_checkpoint(to, rank.trainer.bound(), rank.parts.spec, optimizer_of(rank.run));
  rank.record_checksums();
  rank.state = with_samples_left_out(found, read, rank.run.train.spike.skip_steps * sequences);
  rank.state.identity = rank.parts.identity;
  rank.state.spike.rewinds = rewinds;
  if (!rank.state.spike.recent.empty()) rank.result.loss = rank.state.spike.recent.back().loss;
  for (const auto& monitor : rank.monitors) monitor->restore(rank.state);
  rank.saver.rewound_to({rank.state.step, to});
  rank.save_log.begin();
  rank.group.barrier();  // all have read it
  if (rank.group.leads()) rewind_directory(rank, step, to);
  rank.group.barrier();
  // With the new position, so that a resume resumes from here and not into the same samples.
  rank.saver.save(rank.state, Saver::Occasion::periodic);
  rank.local.begin(-1);  // those there are belong to the steps that were left
  return true;
}

}  // namespace sextant
