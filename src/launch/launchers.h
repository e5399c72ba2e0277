// The launchers themselves, one file each, for requests that launch_text (launch.h) has checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/launch.h"

namespace sextant {

std::string slurm_text(const LaunchRequest& request);
std::string mpi_text(const LaunchRequest& request);
std::string kubernetes_text(const LaunchRequest& request);

int nodes(const LaunchRequest& request);
int ranks_on_a_node(const LaunchRequest& request);  // fewer than ranks_per_node when the world is smaller
std::vector<std::string> program_words(const LaunchRequest& request);  // binary, train, config, overrides; unquoted

// The options with which srun starts the ranks, the container's included, and the program; each quoted.
std::vector<std::string> srun_words(const LaunchRequest& request);
std::vector<std::string> apptainer_words(const LaunchRequest& request);  // "apptainer exec IMAGE", quoted; none without

int64_t time_limit_seconds(const std::string& time_limit);  // UserError for what Slurm would not read
int64_t warning_seconds(int64_t time_limit);  // how long before the limit the run is asked to save and stop

// The time a run has to finish its step and its save once it is asked to stop.
constexpr int64_t kGraceSeconds = 600;

}  // namespace sextant
