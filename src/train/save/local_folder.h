// Where a run's local checkpoints lie on each host: a folder of checkpoint.local_dir that belongs to this run alone.
// OUT/local_checkpoints.json names it, so that a new run in the same place never meets copies of an old one.
#pragma once

#include <filesystem>

#include "config/run_config.h"

namespace sextant {

// Of the run in `out`; makes the name where there is none yet. For the leader. Empty where the run keeps none.
std::filesystem::path local_folder_of(const RunConfig& run, const std::filesystem::path& out);

// The folder that OUT/local_checkpoints.json names; empty where there is no such file.
std::filesystem::path known_local_folder(const std::filesystem::path& out);

// Removes, on this host, folders of earlier runs in the same `out`. On each host.
void remove_abandoned_folders(const std::filesystem::path& folder);

}  // namespace sextant
