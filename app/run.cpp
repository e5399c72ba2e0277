#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "app/json_output.h"
#include "app/output.h"
#include "app/run_inputs.h"
#include "app/verbs.h"
#include "base/error.h"
#include "base/files.h"
#include "comm/launcher.h"
#include "config/load.h"
#include "config/mesh_axes.h"
#include "supervise/host_list.h"
#include "supervise/stop_signals.h"
#include "supervise/supervisor.h"
#include "train/world.h"

#include <nlohmann/json.hpp>

namespace sextant {

namespace fs = std::filesystem;

namespace {

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000)));
}

bool is_on_path(const std::string& program) {
  const char* given = std::getenv("PATH");
  std::string path = given ? given : "";
  for (size_t at = 0; at <= path.size();) {
    size_t end = std::min(path.find(':', at), path.size());
    std::error_code ignored;
    if (fs::is_regular_file(fs::path(path.substr(at, end - at)) / program, ignored)) return true;
    at = end + 1;
  }
  return false;
}

Starter starter_of(const RunArguments& a) {
  if (a.slurm_step) return Starter::srun;
  return a.mpi > 0 ? Starter::mpirun : Starter::process;
}

void check_start(const RunArguments& a, const RunConfig& run) {
  if (running_under_mpi())
    throw UserError({.place = "run",
                     .got = "a launcher started this process as one of several",
                     .expected = "one `sextant run`, which starts the ranks itself",
                     .hint = "leave mpirun or srun out and give --mpi N or --slurm-step"});
  if (a.mpi > 0) require_world(run, a.mpi, "--mpi");
  if (starter_of(a) == Starter::process && !a.launcher_arguments.empty())
    throw UserError({.place = "--launcher-arg",
                     .got = "is given, but ranks are threads of one process",
                     .expected = "--mpi N or --slurm-step too, or leave it out"});
  if (a.slurm_step && std::getenv("SLURM_JOB_ID") == nullptr)
    throw UserError({.place = "--slurm-step",
                     .got = "not inside a Slurm allocation (SLURM_JOB_ID is not set)",
                     .expected = "salloc or sbatch around it"});
  const char* launcher = a.slurm_step ? "srun" : "mpirun";
  if (starter_of(a) != Starter::process && !is_on_path(launcher))
    throw UserError({.place = launcher, .got = "is not on the PATH", .expected = "an installed launcher"});
  if (a.hosts.empty()) return;
  int64_t slots = slots_of(parse_hosts(read_file(a.hosts), a.hosts));
  if (slots < a.mpi)
    throw UserError({.place = a.hosts,
                     .got = fmt::format("{} slots for {} ranks", slots, a.mpi),
                     .expected = "at least as many slots as ranks"});
}

}  // namespace

ExitCode run_verb(const RunArguments& a) {
  StopSignals signals;
  outlive_standard_output();
  RunConfig run = load_config(a.config, a.overrides);
  check_start(a, run);
  faults_of(a.inject, run);  // refused here, before anything starts
  bool echoes = !a.json && a.verbosity != Verbosity::quiet;
  RunReport report = supervise({.run = run,
                                .config = a.config,
                                .overrides = a.overrides,
                                .out = run_directory(run, a.config, a.out),
                                .faults = a.inject,
                                .start = {.starter = starter_of(a),
                                          .binary = fs::read_symlink("/proc/self/exe").string(),
                                          .ranks = ranks_of(run.mesh),
                                          .launcher_arguments = a.launcher_arguments},
                                .hosts = a.hosts,
                                .retry = {.retries = a.retries, .first_wait = milliseconds_of(a.backoff)},
                                .watch = {.stale = milliseconds_of(a.stale), .start = milliseconds_of(a.start_limit)},
                                .replay_limit = milliseconds_of(a.replay_limit),
                                .preflight = a.preflight,
                                .burn = std::chrono::duration<double>(a.burn),
                                .echo = echoes},
                               signals);
  if (a.json)
    print_json(report_json(report, run));
  else
    fmt::print("{}{}", echoes ? "\n" : "", report_text(report, run));
  return report.outcome;
}

}  // namespace sextant
