#include <fmt/format.h>

#include "launch/launchers.h"
#include "launch/quote.h"

namespace sextant {

namespace {

std::vector<std::string> mpirun_words(const LaunchRequest& r) {
  std::vector<std::string> words = {"mpirun", fmt::format("-n {}", r.world_size),
                                    fmt::format("--map-by ppr:{}:node:PE={}", ranks_on_a_node(r), r.cpus_per_rank),
                                    "--bind-to core"};
  if (!r.hostfile.empty()) words.push_back("--hostfile " + shell_quoted(r.hostfile));
  if (!r.time_limit.empty()) words.push_back(fmt::format("--timeout {}", time_limit_seconds(r.time_limit)));
  for (const std::string& word : apptainer_words(r)) words.push_back(word);
  for (const std::string& word : program_words(r)) words.push_back(shell_quoted(word));
  return words;
}

// srun by itself starts ranks on all nodes of an allocation.
std::vector<std::string> allocated_words(const LaunchRequest& r) {
  std::vector<std::string> words = srun_words(r);
  if (!r.time_limit.empty())
    words.insert(words.begin() + 1, fmt::format("--time={}", (time_limit_seconds(r.time_limit) + 59) / 60));
  return words;
}

}  // namespace

std::string mpi_text(const LaunchRequest& r) {
  if (r.remote_start == RemoteStart::ssh) return "#!/bin/bash\nset -euo pipefail\n\n" + shell_command(mpirun_words(r));
  return fmt::format(
             "#!/bin/bash\n# Inside an allocation of {} nodes (salloc, or a batch script).\nset -euo pipefail\n\n",
             nodes(r)) +
         shell_command(allocated_words(r));
}

}  // namespace sextant
