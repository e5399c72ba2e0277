#include <fmt/format.h>

#include "base/exit_code.h"
#include "base/shell_quoted.h"
#include "launch/launchers.h"
#include "launch/quote.h"

namespace sextant {

namespace {

// Slurm's own form, whatever form it came in.
std::string slurm_time(int64_t seconds) {
  return fmt::format("{}-{:02}:{:02}:{:02}", seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
}

// sbatch reads the words of a #SBATCH line nearly as a shell does.
std::string batch_quoted(const std::string& value) {
  return shell_quoted(value) == value ? value : "\"" + value + "\"";
}

std::string batch_options(const LaunchRequest& r) {
  std::string text;
  auto flag = [&](std::string_view name) { text += fmt::format("#SBATCH --{}\n", name); };
  auto option = [&](std::string_view name, const auto& value) {
    text += fmt::format("#SBATCH --{}={}\n", name, value);
  };
  auto named = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) option(name, batch_quoted(value));
  };
  option("job-name", r.name);
  option("nodes", nodes(r));
  option("ntasks", r.world_size);
  option("ntasks-per-node", ranks_on_a_node(r));
  if (r.cpus_per_rank > 0) option("cpus-per-task", r.cpus_per_rank);
  if (r.gpus_per_rank > 0) option("gpus-per-task", r.gpus_per_rank);
  if (!r.memory.empty()) {
    MemoryAmount memory = memory_amount(r.memory);
    option("mem", fmt::format("{}{}", memory.count, memory.unit));
  }
  // Else a job holds one core per rank, and there is nothing to divide.
  if (r.slurm.exclusive || r.cpus_per_rank == 0) flag("exclusive");
  named("partition", r.slurm.partition);
  named("account", r.slurm.account);
  named("qos", r.slurm.qos);
  named("constraint", r.slurm.constraint);
  int64_t warning = kLongestWarning;  // before the partition's limit, where the request names none
  if (!r.time_limit.empty()) {
    int64_t limit = time_limit_seconds(r.time_limit);
    option("time", slurm_time(limit));
    warning = warning_seconds(limit);
  }
  // To the ranks, not to this script, so no "B:". Not TERM: that one comes at the limit itself, and the second TERM
  // would end a save that is under way.
  if (!r.time_limit.empty() || r.slurm.requeue) option("signal", fmt::format("USR1@{}", warning));
  if (r.slurm.requeue) {
    flag("requeue");
    option("open-mode", "append");  // one log for all turns of the job
  }
  named("output", r.slurm.output.empty() ? "%x-%j.log" : r.slurm.output);
  return text;
}

std::string run_text(const LaunchRequest& r) {
  std::vector<std::string> words = srun_words(r, program_words(r));
  if (!r.slurm.requeue) return shell_command(words);
  words.push_back("|| code=$?");
  return "code=0\n" + shell_command(words) +
         fmt::format(
             "# {}: the run was asked to stop and has saved. It resumes from there when the job has its next turn.\n"
             "if [ \"$code\" -eq {} ]; then scontrol requeue \"$SLURM_JOB_ID\"; fi\n"
             "exit \"$code\"\n",
             number_of(ExitCode::stopped), number_of(ExitCode::stopped));
}

}  // namespace

std::vector<std::string> srun_words(const LaunchRequest& r, const std::vector<std::string>& program) {
  const std::string cores = r.cpus_per_rank > 0 ? fmt::format("{}", r.cpus_per_rank) : "\"$cores\"";
  std::vector<std::string> words = {"srun",
                                    "--mpi=" + shell_quoted(r.srun_mpi),
                                    "--kill-on-bad-exit=1",
                                    fmt::format("--ntasks={}", r.world_size),
                                    fmt::format("--ntasks-per-node={}", ranks_on_a_node(r)),
                                    fmt::format("--cpus-per-task={}", cores)};  // srun does not take sbatch's
  if (r.gpus_per_rank > 0) words.push_back(fmt::format("--gpus-per-task={}", r.gpus_per_rank));
  if (!r.container.empty() && r.container_runtime == ContainerRuntime::pyxis) {
    words.push_back("--container-image=" + shell_quoted(r.container));
    words.push_back("--container-mounts=\"$PWD:$PWD\"");
    words.push_back("--container-workdir=\"$PWD\"");
  }
  for (const std::string& word : apptainer_words(r)) words.push_back(word);
  for (const std::string& word : program) words.push_back(shell_quoted(word));
  return words;
}

// Slurm writes the cores of the job's nodes as "72(x2),36"; all nodes are taken to be like the first.
std::string slurm_cores_text(const LaunchRequest& r) {
  if (r.cpus_per_rank > 0) return "";
  return fmt::format(
      "cores=\"${{SLURM_JOB_CPUS_PER_NODE:?not inside a Slurm allocation}}\"  # of a node, for {} ranks\n"
      "cores=${{cores%%[(,]*}}\n"
      "cores=$((cores / {}))\n"
      "[ \"$cores\" -gt 0 ] || cores=1\n\n",
      ranks_on_a_node(r), ranks_on_a_node(r));
}

// All ranks take part: their messages are examined too, and the doctor looks at each host once.
std::string preflight_text(const LaunchRequest& r) {
  if (!r.preflight) return "";
  std::vector<std::string> doctor = {r.binary, "doctor"};
  if (r.needs_gpus) doctor.insert(doctor.end(), {"--device", "cuda"});
  std::vector<std::string> words = srun_words(r, doctor);
  words.push_back("|| healthy=$?");
  return "healthy=0\n" + shell_command(words) +
         "if [ \"$healthy\" -ne 0 ]; then\n"
         "  echo \"preflight: sextant doctor ended with exit code $healthy, see above; training was not started\" >&2\n"
         "  exit \"$healthy\"\n"
         "fi\n\n";
}

std::string slurm_text(const LaunchRequest& r) {
  return "#!/bin/bash\n" + batch_options(r) + "\nset -euo pipefail\n\n" + slurm_cores_text(r) + preflight_text(r) +
         run_text(r);
}

}  // namespace sextant
