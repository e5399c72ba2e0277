#include <fmt/format.h>

#include "launch/launchers.h"
#include "launch/quote.h"

namespace sextant {

namespace {

// Slurm's own form, whatever form it came in.
std::string slurm_time(int64_t seconds) {
  return fmt::format("{}-{:02}:{:02}:{:02}", seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
}

}  // namespace

std::vector<std::string> srun_words(const LaunchRequest& r) {
  std::vector<std::string> words = {"srun",
                                    "--mpi=pmix",
                                    "--kill-on-bad-exit=1",
                                    fmt::format("--ntasks={}", r.world_size),
                                    fmt::format("--ntasks-per-node={}", ranks_on_a_node(r)),
                                    fmt::format("--cpus-per-task={}", r.cpus_per_rank)};  // srun does not take sbatch's
  if (r.gpus_per_rank > 0) words.push_back(fmt::format("--gpus-per-task={}", r.gpus_per_rank));
  if (!r.container.empty() && r.container_runtime == ContainerRuntime::pyxis) {
    words.push_back("--container-image=" + shell_quoted(r.container));
    words.push_back("--container-mounts=\"$PWD:$PWD\"");
    words.push_back("--container-workdir=\"$PWD\"");
  }
  for (const std::string& word : apptainer_words(r)) words.push_back(word);
  for (const std::string& word : program_words(r)) words.push_back(shell_quoted(word));
  return words;
}

std::string slurm_text(const LaunchRequest& r) {
  std::string text = "#!/bin/bash\n";
  auto option = [&](std::string_view name, const auto& value) {
    text += fmt::format("#SBATCH --{}={}\n", name, value);
  };
  option("job-name", r.name);
  option("nodes", nodes(r));
  option("ntasks", r.world_size);
  option("ntasks-per-node", ranks_on_a_node(r));
  option("cpus-per-task", r.cpus_per_rank);
  if (r.gpus_per_rank > 0) option("gpus-per-task", r.gpus_per_rank);
  if (!r.partition.empty()) option("partition", r.partition);
  if (!r.time_limit.empty()) {
    int64_t limit = time_limit_seconds(r.time_limit);
    option("time", slurm_time(limit));
    // To the ranks, not to this script, so no "B:". Not TERM: that one comes at the limit itself, and the second TERM
    // would end a save that is under way.
    option("signal", fmt::format("USR1@{}", warning_seconds(limit)));
  }
  option("output", "%x-%j.log");
  return text + "\nset -euo pipefail\n\n" + shell_command(srun_words(r));
}

}  // namespace sextant
