// The --out directory of a run, apart from what is in a checkpoint: who may write there, what crashed runs left, which
// checkpoints belong to the run as it now goes, and every config it has had.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "train/save/run_lock.h"

namespace sextant {

struct PreparedDirectory {
  RunLock lock;                    // held as long as the run lasts
  std::vector<std::string> notes;  // for a person to read
};

// Makes it and locks it; then removes what ended runs left, and reads their last status. Nothing else has been touched
// when another run holds the lock. `supervisor`: of which this run is an attempt, by the name in its lock; empty: none.
PreparedDirectory prepare_run_directory(const std::filesystem::path& out, const std::string& supervisor = {});

// Moves checkpoints of steps after `step`, and a copy of the metrics, to a new directory OUT/abandoned-N: a run that
// goes on from an earlier step is another branch, whose pruning and resuming must not meet them. Returns that
// directory, or nothing when there are none. After a crash half-way, prepare_run_directory moves the rest.
std::optional<std::filesystem::path> set_aside_later_steps(const std::filesystem::path& out, int64_t step);

// OUT/config.toml, and beside it config-SSSSSS.toml for each config that differs from the one before, by its first
// step. Those of steps after `first_step` go: these steps will be run again.
void record_config(const std::filesystem::path& out, const RunConfig& run, int64_t first_step);

// The configs of a run, by the first step that each was used for.
std::map<int64_t, std::filesystem::path> config_history(const std::filesystem::path& out);

}  // namespace sextant
