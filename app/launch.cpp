#include "app/launch.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/json_output.h"
#include "app/launch_options.h"
#include "base/error.h"
#include "config/load.h"
#include "config/mesh_axes.h"
#include "launch/launch.h"

namespace sextant {

namespace {

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

}  // namespace

void launch_verb(const LaunchArguments& a) {
  LaunchMode mode = launch_mode(a.given);
  refuse_unused(launch_options(), static_cast<size_t>(mode), a.given);
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

}  // namespace sextant
