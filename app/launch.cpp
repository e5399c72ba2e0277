#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/common_options.h"
#include "app/given_options.h"
#include "app/json_output.h"
#include "app/launch_options.h"
#include "app/verb.h"
#include "base/error.h"
#include "config/load.h"
#include "config/mesh_axes.h"
#include "launch/launch.h"

namespace sextant {

namespace {

struct LaunchArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool slurm = false, mpi = false, kubernetes = false;
  bool without_ssh = false;
  std::string binary = "sextant";
  std::string container;
  std::string runtime;  // of the container; empty: the launcher's usual one
  std::string hosts;    // mpirun's hostfile
  std::string time;
  std::string memory;             // of each node
  std::string srun_mpi = "pmix";  // srun's plugin
  bool preflight = false;
  std::string partition, account, qos, constraint, output;  // Slurm's
  bool exclusive = false, requeue = false;
  std::string name_space, volume, service_account, pull_policy;  // Kubernetes'
  std::vector<std::string> node_selector;
  int64_t ranks_per_node = 8;
  int64_t cpus_per_rank = 0;  // 0: not given
  int64_t gpus_per_rank = 0;
  bool json = false;
};

Launcher launcher_of(LaunchMode mode) {
  if (mode == LaunchMode::slurm) return Launcher::slurm;
  return mode == LaunchMode::kubernetes ? Launcher::kubernetes : Launcher::mpi;
}

int count_of(const char* option, int64_t given) {
  if (given < std::numeric_limits<int>::min() || given > std::numeric_limits<int>::max())
    throw UserError({.place = option, .got = std::to_string(given), .expected = "a smaller number"});
  return static_cast<int>(given);
}

ContainerRuntime runtime_of(const LaunchArguments& a) {
  if (a.runtime == "apptainer") return ContainerRuntime::apptainer;
  if (a.runtime == "pyxis") return ContainerRuntime::pyxis;
  return a.mpi && !a.without_ssh ? ContainerRuntime::apptainer : ContainerRuntime::pyxis;  // mpirun supports no other
}

PullPolicy pull_policy_of(const LaunchArguments& a) {
  if (a.pull_policy == "Always") return PullPolicy::always;
  if (a.pull_policy == "IfNotPresent") return PullPolicy::if_not_present;
  return a.pull_policy == "Never" ? PullPolicy::never : PullPolicy::by_tag;
}

// A name that every launcher accepts, from whatever the run is called.
std::string job_name(const RunConfig& run, const std::string& config) {
  std::string name = run.name.empty() ? std::filesystem::path(config).stem().string() : run.name;
  std::string job = "sextant";
  for (unsigned char c : name) {
    if (job.size() >= 40) break;
    bool fits = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
    if (job == "sextant") job += '-';
    if (fits || (c >= 'A' && c <= 'Z'))
      job += static_cast<char>(fits ? c : c - 'A' + 'a');
    else if (job.back() != '-')
      job += '-';
  }
  while (job.back() == '-') job.pop_back();
  return job;
}

void add_slurm_options(CLI::App& verb, LaunchArguments& a) {
  verb.add_option("--partition", a.partition, "Slurm's partition")->group("Slurm");
  verb.add_option("--account", a.account, "whom Slurm charges")->group("Slurm");
  verb.add_option("--qos", a.qos, "Slurm's quality of service")->group("Slurm");
  verb.add_option("--constraint", a.constraint, "features that nodes must have, such as 'h100&ib'")->group("Slurm");
  verb.add_flag("--exclusive", a.exclusive, "no other job on the nodes")->group("Slurm");
  verb.add_flag("--requeue", a.requeue,
                "save before the time limit, wait for the next turn and go on; needs no one to submit it again")
      ->group("Slurm");
  verb.add_option("--output", a.output, "the job's log [%x-%j.log: the job's name and number]")->group("Slurm");
}

void add_kubernetes_options(CLI::App& verb, LaunchArguments& a) {
  verb.add_option("--namespace", a.name_space, "of all objects; required with --without-ssh")->group("Kubernetes");
  verb.add_option("--volume", a.volume,
                  "CLAIM:PATH mounts a PersistentVolumeClaim, /DIR:PATH a directory of every node; the run starts in "
                  "PATH and writes there")
      ->group("Kubernetes");
  verb.add_option("--node-selector", a.node_selector, "KEY=VALUE, a label of the nodes to use (may be repeated)")
      ->allow_extra_args(false)
      ->group("Kubernetes");
  verb.add_option("--service-account", a.service_account, "the account of the pods")->group("Kubernetes");
  verb.add_option("--pull-policy", a.pull_policy, "when the image is fetched: Always, IfNotPresent or Never")
      ->check(CLI::IsMember({"Always", "IfNotPresent", "Never"}))
      ->group("Kubernetes");
}

void add_launch_options(CLI::App& verb, LaunchArguments& a) {
  add_config(verb, a.config, a.overrides);
  verb.add_flag("--slurm", a.slurm, "a batch script for sbatch");
  verb.add_flag("--mpi", a.mpi, "a shell script with mpirun");
  verb.add_flag("--kubernetes", a.kubernetes, "an MPIJob for kubectl apply (needs --container)");
  verb.add_option("--ranks-per-node", a.ranks_per_node, "ranks on each machine")->capture_default_str();
  verb.add_option("--cpus-per-rank", a.cpus_per_rank, "cores for each rank [an equal part of a node's cores]")
      ->check(CLI::Range(1, 1 << 16));
  verb.add_option("--gpus-per-rank", a.gpus_per_rank,
                  "GPUs for each rank, required by device = \"cuda\"; mpirun without a container hands out none")
      ->capture_default_str();
  verb.add_option("--memory", a.memory, "of each node, such as 64G (Slurm, Kubernetes)");
  verb.add_option("--time", a.time, "time limit: MINUTES, HH:MM:SS or DAYS-HH:MM:SS");
  verb.add_option("--hosts", a.hosts, "mpirun's hostfile");
  verb.add_flag("--without-ssh", a.without_ssh,
                "start ranks by srun (--mpi) or kubectl exec (--kubernetes); --slurm never needs ssh");
  verb.add_flag("--preflight", a.preflight,
                "run sextant doctor on all nodes first, and train only if it finds no fault (where srun starts ranks)");
  verb.add_option("--srun-mpi", a.srun_mpi, "how srun connects the ranks, a name of `srun --mpi=list`")
      ->capture_default_str();
  CLI::Option* container = verb.add_option("--container", a.container, "image to run in");
  verb.add_option("--runtime", a.runtime, "what runs the image: pyxis or apptainer")
      ->check(CLI::IsMember({"pyxis", "apptainer"}))
      ->needs(container);
  verb.add_option("--binary", a.binary, "path of sextant on those machines")->capture_default_str();
  verb.add_flag("--json", a.json, "print JSON: the script, and how many ranks and nodes it starts");
  add_slurm_options(verb, a);
  add_kubernetes_options(verb, a);
}

void run_launch(const LaunchArguments& a, VerbContext& context) {
  std::vector<std::string> given = given_options(*context.verb, launch_options());
  LaunchMode mode = launch_mode(given);
  refuse_unused(launch_options(), static_cast<size_t>(mode), given);
  RunConfig run = load_config(a.config, a.overrides);
  LaunchRequest request{.launcher = launcher_of(mode),
                        .name = job_name(run, a.config),
                        .world_size = count_of("mesh", ranks_of(run.mesh)),
                        .ranks_per_node = count_of("--ranks-per-node", a.ranks_per_node),
                        .gpus_per_rank = count_of("--gpus-per-rank", a.gpus_per_rank),
                        .needs_gpus = run.device == DeviceChoice::cuda,
                        .cpus_per_rank = count_of("--cpus-per-rank", a.cpus_per_rank),
                        .srun_mpi = a.srun_mpi,
                        .binary = a.binary,
                        .config = a.config,
                        .overrides = a.overrides,
                        .container = a.container,
                        .container_runtime = runtime_of(a),
                        .time_limit = a.time,
                        .memory = a.memory,
                        .preflight = a.preflight,
                        .hostfile = a.hosts,
                        .remote_start = a.without_ssh ? RemoteStart::without_ssh : RemoteStart::ssh,
                        .slurm = {.partition = a.partition,
                                  .account = a.account,
                                  .qos = a.qos,
                                  .constraint = a.constraint,
                                  .output = a.output,
                                  .exclusive = a.exclusive,
                                  .requeue = a.requeue},
                        .kubernetes = {.name_space = a.name_space,
                                       .volume = a.volume,
                                       .node_selector = a.node_selector,
                                       .service_account = a.service_account,
                                       .pull_policy = pull_policy_of(a)}};
  std::string text = launch_text(request);
  if (!a.json) {
    fmt::print("{}", text);
    return;
  }
  print_json({{"launcher", launch_options().modes[static_cast<size_t>(mode)].name},
              {"name", request.name},
              {"ranks", request.world_size},
              {"nodes", nodes(request)},
              {"text", text}});
}

constexpr ValueFormat kLaunchValues[] = {
    {"RANKS", "ranks", "--ranks-per-node"},
    {"CORES", "cores", "--cpus-per-rank"},
    {"GPUS", "GPUs", "--gpus-per-rank"},
    {"PATH", "the path of a program", "--binary"},
    {"NAME", "a name", "--partition --account --qos --namespace --service-account"},
    {"FEATURES", "features of nodes, such as h100&ib", "--constraint"},
    {"FILE", "the name of a log file, such as %x-%j.log", "--output"},
    {"SOURCE:PATH", "CLAIM:PATH or /DIR:PATH, such as runs:/runs", "--volume"},
    {"KEY=VALUE", "key=value, a label of the nodes", "--node-selector"},
    {"AMOUNT", "an amount of memory, such as 64G", "--memory"},
    {"LIMIT", "a time, as MINUTES, HH:MM:SS or DAYS-HH:MM:SS", "--time"},
    {"IMAGE", "the name of a container image", "--container"},
    {"PLUGIN", "a name that `srun --mpi=list` prints, such as pmix", "--srun-mpi"},
};

}  // namespace

const VerbDef launch_verb{
    .words = "launch",
    .summary = "Print the script that starts a run on many machines",
    .details = "Nothing is started",
    .examples =
        "sextant launch configs/tiny-llama.toml mesh.dp=2 --slurm --ranks-per-node 2 --time 60 > job.sh\n"
        "sextant launch configs/tiny-llama.toml mesh.dp=2 --mpi --ranks-per-node 2 > run.sh",
    .values = kLaunchValues,
    .declare = declare_verb<add_launch_options, run_launch>,
};

}  // namespace sextant
