#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "app/common_options.h"
#include "app/json_output.h"
#include "app/output.h"
#include "app/run_inputs.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/error.h"
#include "base/files.h"
#include "base/verbosity.h"
#include "comm/launcher.h"
#include "comm/transport.h"
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

struct RunArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string out;          // empty: runs/NAME
  int64_t mpi = 0;          // ranks under mpirun; 0: threads of one process
  bool slurm_step = false;  // under srun, inside an allocation
  std::string hosts;        // mpirun's hostfile, with spares
  std::vector<std::string> launcher_arguments;
  int64_t retries = 5;
  double backoff = 1, stale = 60, start_limit = 3600, replay_limit = 600;  // seconds
  bool preflight = false;
  double burn = 0;  // seconds
  std::vector<std::string> inject;
  Verbosity verbosity = Verbosity::usual;
  bool json = false;
};

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

void add_run_options(CLI::App& verb, RunArguments& a) {
  add_config(verb, a.config, a.overrides);
  verb.add_option("--out", a.out, "directory for checkpoints, metrics and run.log [runs/NAME]");
  CLI::Option* mpi = verb.add_option("--mpi", a.mpi, "start this many ranks with mpirun [threads of one process]")
                         ->check(CLI::Range(int64_t{1}, kMaxRanks));
  CLI::Option* step = verb.add_flag("--slurm-step", a.slurm_step, "start the ranks with srun, inside an allocation");
  verb.add_option("--hosts", a.hosts, "hostfile for mpirun; hosts beyond those needed are spares")->needs(mpi);
  verb.add_option("--launcher-arg", a.launcher_arguments, "word for mpirun or srun (may be repeated)")
      ->allow_extra_args(false);
  verb.add_option("--retries", a.retries, "give up after more failures than this without a new checkpoint")
      ->check(CLI::Range(int64_t{0}, kMaxSteps))
      ->capture_default_str();
  verb.add_option("--backoff", a.backoff, "seconds before the second restart without progress; doubled from then on")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  verb.add_option("--stale", a.stale, "seconds without a heartbeat of a rank after which the run hangs")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  verb.add_option("--start-limit", a.start_limit, "seconds from a start to the first heartbeat")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  verb.add_option("--replay-limit", a.replay_limit,
                  "seconds for running a step again that was not finite; 0: it is not")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  CLI::Option* preflight = verb.add_flag("--preflight", a.preflight, "run doctor's checks before each start");
  verb.add_option("--burn", a.burn, "seconds for which doctor computes there, to find silent corruption")
      ->check(CLI::Range(0.0, 1e6))
      ->needs(preflight);
  verb.add_option("--inject", a.inject, "a fault on purpose, KIND@STEP[:RANK], once (may be repeated)")
      ->allow_extra_args(false);
  verb.add_flag("--json", a.json, "print the summary alone, as JSON");
  add_quiet(verb, a.verbosity, "print the summary alone; the output of the run is in run.log");
  mpi->excludes(step);
}

ExitCode run_supervised(const RunArguments& a) {
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

constexpr ValueFormat kRunValues[] = {
    {"RANKS", "ranks", "--mpi"},
    {"SECONDS", "seconds", "--backoff --stale --start-limit --replay-limit"},
    {"FAILURES", "failures", "--retries"},
    {"WORD", "a word for mpirun or srun", "--launcher-arg"},
};

}  // namespace

const VerbDef run_verb{
    .words = "run",
    .summary = "Train and restart from the last checkpoint on failure",
    .details = "Starts train, watches it, and restarts it when it fails",
    .examples = "sextant run configs/tiny-llama.toml checkpoint.every=2 --out runs/kept --inject kill@5",
    .values = kRunValues,
    .declare = declare_verb<add_run_options, run_supervised>,
};

}  // namespace sextant
