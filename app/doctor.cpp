#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "app/device.h"
#include "app/processes.h"
#include "app/verb.h"
#include "app/verbosity_options.h"
#include "base/text_style.h"
#include "base/threads.h"
#include "base/verbosity.h"
#include "doctor/burn.h"
#include "doctor/checks.h"
#include "doctor/ranks.h"
#include "doctor/report.h"
#include "train/health/hang_report.h"
#include "train/health/stop.h"
#ifdef SEXTANT_CUDA
#include "exec/cuda/runtime/devices.h"
#endif

namespace sextant {

namespace {

struct DoctorArguments {
  std::string directory = ".";  // where runs will write
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
  double burn = 0;  // seconds
  uint64_t seed = 1;
  std::string device = "auto";
};

constexpr std::chrono::seconds kPatience{60};

// One rank for each GPU of this machine, when no launcher says how many there are.
int ranks_here([[maybe_unused]] const std::string& device) {
#ifdef SEXTANT_CUDA
  if (device != "cpu") return std::max<int>(1, static_cast<int>(cuda_devices().devices.size()));
#endif
  return 1;
}

// Bits are compared, so they must repeat.
std::unique_ptr<Executor> repeatable_executor(const std::string& device, const RankContext& context, int threads) {
  RunConfig run;
  run.device = device_named(device);
  run.places["device"] = "--device";
  run.train.deterministic = true;
  return executors_for(run)(context, threads);
}

struct Visit {
  const DoctorArguments& arguments;
  const StopRequest& stop;
  int threads;
  bool shows;  // progress
};

// Findings that rank 0 reports when all ranks have finished their checks; empty on the other ranks.
std::vector<Finding> examine_rank(const Visit& visit, const RankContext& context) {
  const DoctorArguments& a = visit.arguments;
  Host host = this_host(a.directory);
  Examination own = examine(host);
  std::vector<Finding> findings;
  std::vector<std::string> hosts;
  if (context.transport) {
    std::vector<RankExamination> all = gather_examinations(*context.transport, host, own);
    if (context.rank == 0) {
      findings = merge_findings(all);
      for (const RankExamination& rank : all) hosts.push_back(rank.host);
      for (Finding& f : compare_facts(all)) findings.push_back(std::move(f));
    }
    for (Finding& f : check_messages(*context.transport, host, all)) findings.push_back(std::move(f));
  } else {
    findings = own.findings;
  }
  // With other ranks one round is always run: it is the round trip of the device's own collectives.
  if (a.burn <= 0 && !context.transport) return findings;
  std::unique_ptr<Executor> executor = repeatable_executor(a.device, context, visit.threads);
  BurnOptions options{
      .seconds = a.burn, .seed = a.seed, .stop = [&] { return visit.stop.asked(); }, .hosts = std::move(hosts)};
  if (a.burn > 0 && visit.shows)
    options.progress = [&a](int64_t rounds, double seconds) {
      fmt::print(stderr, "\r\033[Kburn {:.0f} of {:.0f} s, {} rounds", seconds, a.burn, rounds);
    };
  for (Finding& f : burn(*executor, context, options)) findings.push_back(std::move(f));
  if (a.burn > 0 && visit.shows && context.rank == 0) fmt::print(stderr, "\r\033[K");
  return findings;
}

// Of a run's directory: where its ranks were last seen, when one of them is late or the run has not come to its end.
std::vector<Finding> findings_of_run(const std::string& directory) {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  std::vector<LastBeat> beats = last_beats(directory);
  std::vector<Finding> findings;
  auto is_over = [](const LastBeat& beat) { return beat.state == "finished"; };
  if (beats.empty() || std::ranges::all_of(beats, is_over)) return findings;
  auto warn = [&](std::string found, std::string advice) {
    findings.push_back({"run", "ranks", Health::warning, std::move(found), std::move(advice), {}});
  };
  if (auto report = hang_report(beats, std::chrono::duration_cast<std::chrono::milliseconds>(now).count()))
    warn(report->text(),
         fmt::format("look at rank {} on {} first: the others wait for it", report->late_rank, report->late_host));
  else
    for (const std::string& line : previous_failures(directory)) warn(line, "sextant log has what happened before");
  return findings;
}

void add_doctor_options(CLI::App& verb, DoctorArguments& a) {
  verb.add_option("directory", a.directory, "where runs will write")->capture_default_str();
  verb.add_flag("--json", a.json, "print JSON");
  add_quiet(verb, a.verbosity, "no progress of --burn on standard error");
  CLI::Option* burn =
      verb.add_option("--burn", a.burn, "compute for this many seconds and compare, to find silent corruption")
          ->check(CLI::Range(0.0, 1e6));
  verb.add_option("--seed", a.seed, "of the data that --burn computes with")->capture_default_str()->needs(burn);
  verb.add_option("--device", a.device, "where to compute")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
}

ExitCode run_doctor(const DoctorArguments& a, VerbContext& context) {
  context.processes.join();
  StopRequest stop;
  Launch launch = context.processes.launch(kPatience, {});
  // Without a burn nothing is computed; a device that is not here is refused all the same.
  if (a.device == "cuda" && a.burn <= 0 && !launch.process) executor_for(a.device, 1);
  std::vector<Finding> findings;
  int ranks = ranks_here(a.device);
  Visit visit{a, stop, launch.process ? launch.cores : std::max(1, core_count() / ranks),
              a.verbosity != Verbosity::quiet && ::isatty(STDERR_FILENO) != 0};
  run_ranks(launch, {ranks, kPatience}, [&](const RankContext& context) {
    std::vector<Finding> own = examine_rank(visit, context);
    if (context.rank == 0) findings = std::move(own);
  });
  if (!launch.leads()) return ExitCode::finished;
  for (Finding& finding : findings_of_run(a.directory)) findings.push_back(std::move(finding));
  fmt::print("{}", a.json ? findings_json(findings) : findings_text(findings, colours_of(STDOUT_FILENO)));
  std::fflush(stdout);  // a failure ends all processes at once
  ExitCode code = exit_code_of(findings);
  return code == ExitCode::finished && stop.asked() ? ExitCode::stopped : code;
}

}  // namespace

const VerbDef doctor_verb{
    .words = "doctor",
    .summary = "Check that this machine is fit to train",
    .details = "Under mpirun and srun it checks the machines of all ranks together",
    .examples = "sextant doctor",
    .values = {},
    .declare = declare_verb<add_doctor_options, run_doctor>,
};

}  // namespace sextant
