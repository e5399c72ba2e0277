// The options of `sextant launch`; launch_arguments.cpp puts them on the command line, launch_options.h has the table
// of which launcher uses which.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sextant {

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
  std::vector<std::string> given;  // names of the options on the command line
};

void launch_verb(const LaunchArguments& arguments);

// All but the config; calls launch_verb when the verb was parsed.
void add_launch_options(CLI::App& verb, LaunchArguments& arguments);

}  // namespace sextant
