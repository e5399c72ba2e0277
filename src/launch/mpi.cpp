#include <fmt/format.h>

#include "base/shell_quoted.h"
#include "launch/launchers.h"
#include "launch/quote.h"
#include "launch/stop_forwarding.h"

namespace sextant {

namespace {

// The machines of a run are taken to be like the one that runs the script. Cores, not hardware threads: mpirun binds
// so.
std::string host_cores_text(const LaunchRequest& r) {
  if (r.cpus_per_rank > 0) return "";
  return fmt::format(
      "cores=$(lscpu -p=CORE,SOCKET | grep -v '^#' | sort -u | wc -l)  # of a machine, for {} ranks\n"
      "cores=$((cores / {}))\n"
      "[ \"$cores\" -gt 0 ] || cores=1\n\n",
      ranks_on_a_node(r), ranks_on_a_node(r));
}

std::vector<std::string> mpirun_words(const LaunchRequest& r) {
  std::vector<std::string> words = {"set --", "setsid"};  // a session of its own: Ctrl-C reaches this script alone
  if (!r.time_limit.empty()) {
    int64_t limit = time_limit_seconds(r.time_limit), warning = warning_seconds(limit);
    words.push_back(fmt::format("timeout --foreground --preserve-status --signal=USR1 --kill-after={} {}", warning,
                                limit - warning));
  }
  for (std::string word : {std::string("mpirun"), fmt::format("-n {}", r.world_size),
                           fmt::format("--map-by ppr:{}:node:PE={}", ranks_on_a_node(r),
                                       r.cpus_per_rank > 0 ? fmt::format("{}", r.cpus_per_rank) : "\"$cores\""),
                           std::string("--bind-to core")})
    words.push_back(std::move(word));
  if (!r.hostfile.empty()) words.push_back("--hostfile " + shell_quoted(r.hostfile));
  for (const std::string& word : apptainer_words(r)) words.push_back(word);
  for (const std::string& word : program_words(r)) words.push_back(shell_quoted(word));
  return words;
}

// srun by itself starts ranks on all nodes of an allocation.
std::vector<std::string> allocated_words(const LaunchRequest& r) {
  std::vector<std::string> words = srun_words(r, program_words(r));
  if (!r.time_limit.empty())
    words.insert(words.begin() + 1, fmt::format("--time={}", (time_limit_seconds(r.time_limit) + 59) / 60));
  words.insert(words.begin() + 1, "--disable-status");  // the first Ctrl-C goes to the ranks
  return words;
}

}  // namespace

std::string mpi_text(const LaunchRequest& r) {
  if (r.remote_start == RemoteStart::ssh)
    return "#!/bin/bash\nset -u\n\n" + host_cores_text(r) + shell_command(mpirun_words(r)) +
           "\n# mpirun would kill its ranks, and a save with them, two seconds after SIGINT, SIGTERM or SIGHUP.\n"
           "# It gets SIGUSR1 instead and passes it on: the run saves and stops. A second Ctrl-C or SIGTERM ends it at "
           "once.\n" +
           std::string(kStopForwarding);
  return fmt::format(
             "#!/bin/bash\n# Inside an allocation of {} nodes (salloc, or a batch script).\nset -euo pipefail\n\n",
             nodes(r)) +
         slurm_cores_text(r) + preflight_text(r) + shell_command(allocated_words(r));
}

}  // namespace sextant
