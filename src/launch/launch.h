// How a run is started on many machines: the text of a Slurm batch script, an mpirun script or a Kubernetes MPIJob.
// Pure text from a plain request: nothing is started here, and what is printed can be read, kept and changed before
// use.
//
// All of them run `BINARY train CONFIG OVERRIDES…` once per rank. Paths are those of the machine (or container) that
// runs it; every word is quoted, so they may hold spaces and quotes, but no control characters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sextant {

enum class Launcher : uint8_t {
  slurm,       // for sbatch
  mpi,         // for bash: mpirun
  kubernetes,  // for kubectl apply: MPIJob, kubeflow.org/v2beta1
};

enum class ContainerRuntime : uint8_t { pyxis, apptainer };  // of Slurm; mpirun knows apptainer only

// How ranks are started on other machines where there is no ssh: mpi gives a script for srun inside an allocation,
// kubernetes starts them through `kubectl exec` (which the image must hold). Slurm never needs ssh.
enum class RemoteStart : uint8_t { ssh, without_ssh };

enum class PullPolicy : uint8_t {
  by_tag,
  always,
  if_not_present,
  never
};  // by_tag: Kubernetes decides by the image's tag

// Options that only a Slurm batch script has. Texts are in the syntax of sbatch; an empty text means none.
struct SlurmOptions {
  std::string partition, account, qos, constraint;
  std::string output;      // the job's log; may have sbatch's %x and %j
  bool exclusive = false;  // no other job on the nodes
  bool requeue = false;    // a run that was asked to stop, and saved, waits for its turn again and goes on

  bool operator==(const SlurmOptions&) const = default;
};

// Options that only an MPIJob has. An empty text means none.
struct KubernetesOptions {
  std::string name_space;  // of every object
  std::string volume;      // CLAIM:PATH, or /PATH/ON/EVERY/NODE:PATH; runs start in PATH and so write there
  std::vector<std::string> node_selector;  // of the workers: "KEY=VALUE"
  std::string service_account;
  PullPolicy pull_policy = PullPolicy::by_tag;

  bool operator==(const KubernetesOptions&) const = default;
};

struct LaunchRequest {
  Launcher launcher = Launcher::slurm;
  std::string name = "sextant";  // letters, digits and dashes; Kubernetes allows no capitals
  int world_size = 1;
  int ranks_per_node = 1;  // divides the world, or holds all of it
  int gpus_per_rank = 0;
  bool needs_gpus = false;  // the config says device = "cuda": refused where the launcher is asked for none
  int cpus_per_rank =
      0;  // 0: an equal part of the node's cores, which the job finds out; Kubernetes then sets no limit
  std::string srun_mpi = "pmix";  // the plugin by which srun connects ranks, as `srun --mpi=list` names it
  std::string binary = "sextant";
  std::string config;
  std::vector<std::string> overrides;  // "train.steps=50"
  std::string container;               // an image; none when empty, except that Kubernetes needs one
  ContainerRuntime container_runtime = ContainerRuntime::pyxis;
  std::string time_limit;  // as Slurm writes it: MINUTES, HH:MM:SS, DAYS-HH:MM:SS; none when empty
  std::string memory;      // of each node, Slurm and Kubernetes only: "64G", with K, M, G or T; none when empty
  bool preflight = false;  // where srun starts the ranks: `BINARY doctor` on all of them first; a fault ends the job
  std::string hostfile;    // mpi only
  RemoteStart remote_start = RemoteStart::ssh;
  SlurmOptions slurm;
  KubernetesOptions kubernetes;
};

int nodes(const LaunchRequest& request);

// UserError for a request that no launcher, or not this one, can serve.
std::string launch_text(const LaunchRequest& request);

}  // namespace sextant
