// The launchers themselves, one file each, for requests that launch_text (launch.h) has checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/launch.h"

namespace sextant {

// UserError for a request that no launcher, or not the one it names, can serve.
void check_request(const LaunchRequest& request);
[[noreturn]] void refuse_request(std::string field, std::string got, std::string expected, std::string hint = "");

std::string slurm_text(const LaunchRequest& request);
std::string mpi_text(const LaunchRequest& request);
std::string kubernetes_text(const LaunchRequest& request);

int ranks_on_a_node(const LaunchRequest& request);  // fewer than ranks_per_node when the world is smaller
std::vector<std::string> program_words(const LaunchRequest& request);  // binary, train, config, overrides; unquoted

// The options with which srun starts the ranks, the container's included, and the program; each quoted.
std::vector<std::string> srun_words(const LaunchRequest& request, const std::vector<std::string>& program);
// Commands that set $cores, the cores of a rank, where the request leaves them to the job; "" otherwise.
std::string slurm_cores_text(const LaunchRequest& request);
std::string preflight_text(const LaunchRequest& request);                // commands of a script; "" without a preflight
std::vector<std::string> apptainer_words(const LaunchRequest& request);  // "apptainer exec IMAGE", quoted; none without

int64_t time_limit_seconds(const std::string& time_limit);  // UserError for what Slurm would not read

// How long before its time limit a run is asked to save and stop.
constexpr int64_t kLongestWarning = 300;
int64_t warning_seconds(int64_t time_limit);  // a quarter of short limits

// "64G" in the largest unit that needs no fraction. UserError for anything but a number and K, M, G or T.
struct MemoryAmount {
  int64_t count = 0;
  char unit = 'M';  // each 1024 times the one before
};
MemoryAmount memory_amount(const std::string& text);

// CLAIM:PATH or /HOST/PATH:PATH.
struct VolumeSource {
  std::string claim, host_path;  // one of them
  std::string mount;
};
VolumeSource volume_source(const std::string& text);  // UserError for another form

// The time a run has to finish its step and its save once it is asked to stop.
constexpr int64_t kGraceSeconds = 600;

}  // namespace sextant
