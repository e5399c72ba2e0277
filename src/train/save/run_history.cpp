#include "train/save/run_history.h"

#include <map>

#include "base/error.h"
#include "ckpt/checkpoints.h"
#include "ckpt/model_directory.h"
#include "config/load.h"
#include "train/save/resume.h"
#include "train/save/run_checkpoint.h"
#include "train/save/run_directory.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

// How many samples steps read, by the first step of each config.
using SequencesByStep = std::map<int64_t, int64_t>;

// Samples of the steps after `done` up to `step`.
int64_t samples_between(const SequencesByStep& sequences, int64_t done, int64_t step) {
  int64_t samples = 0;
  for (auto at = sequences.begin(); at != sequences.end(); ++at) {
    auto next = std::next(at);
    int64_t first = std::max(at->first, done + 1);
    int64_t last = std::min(next == sequences.end() ? step : next->first - 1, step);
    if (first <= last) samples += (last - first + 1) * at->second;
  }
  return samples;
}

// Samples of a run, as far as its checkpoints record them.
struct KnownSamples {
  std::map<int64_t, int64_t> trained;   // after a step, skipped ones left out: the beginning, and the checkpoints left
  std::vector<SkippedSamples> skipped;  // of the run as it went: the latest checkpoint has all
};

KnownSamples known_samples(const fs::path& out, const SequencesByStep& sequences) {
  KnownSamples known;
  if (sequences.begin()->first == 1) known.trained[0] = 0;
  for (const Checkpoint& checkpoint : list_checkpoints(out, kRunStateFile)) {
    try {
      RunState state = read_run_state(checkpoint.path);
      known.trained[state.step] = state.samples - state.skipped_samples();
      known.skipped = state.skipped;
    } catch (const std::runtime_error&) {
      continue;  // damaged: another one tells
    }
  }
  return known;
}

int64_t trained_before(const fs::path& out, const SequencesByStep& sequences, const KnownSamples& known, int64_t step) {
  auto after = known.trained.upper_bound(step - 1);
  if (after != known.trained.begin()) {
    auto [done, samples] = *std::prev(after);
    return samples + samples_between(sequences, done, step - 1);
  }
  if (after != known.trained.end()) return after->second - samples_between(sequences, step - 1, after->first);
  throw UserError({.place = out.string(),
                   .got = "the run began in another directory, and no checkpoint is left that says with which sample",
                   .expected = "a checkpoint of the run"});
}

int64_t samples_before(const fs::path& out, const SequencesByStep& sequences, int64_t step) {
  KnownSamples known = known_samples(out, sequences);
  int64_t samples = trained_before(out, sequences, known, step);
  for (const SkippedSamples& skipped : known.skipped)
    if (skipped.step < step) samples += skipped.count;
  return samples;
}

}  // namespace

StepOfRun find_step(const fs::path& out, int64_t step, const std::vector<std::string>& overrides) {
  std::error_code none;
  if (!fs::is_directory(out, none))
    throw UserError({.place = out.string(),
                     .got = fs::exists(out, none) ? "not a directory" : "directory not found",
                     .expected = "the --out directory of a run"});
  std::map<int64_t, fs::path> history = config_history(out);
  if (history.empty())
    throw UserError({.place = out.string(),
                     .got = "there is no config-000001.toml in it",
                     .expected = "the --out directory of a run"});
  SequencesByStep sequences;
  for (const auto& [first_step, file] : history) sequences[first_step] = load_config(file).batch.sequences;
  auto config = history.upper_bound(step);
  RunConfig last = load_config(history.rbegin()->second);
  if (step < 1 || config == history.begin() || step > last.train.steps)
    throw UserError(
        {.place = out.string(),
         .got = fmt::format("step {}", step),
         .expected = fmt::format("one of the run's steps, {} to {}", history.begin()->first, last.train.steps)});
  StepOfRun found{.run = load_config(std::prev(config)->second, overrides),
                  .first_sample = samples_before(out, sequences, step)};
  found.run.checkpoint.resume = {};
  if (!found.run.given("data.validation_split")) keep_validation_split(found.run, out, [](std::string_view) {});
  return found;
}

}  // namespace sextant
