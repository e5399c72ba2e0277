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

struct LaunchRequest {
  Launcher launcher = Launcher::slurm;
  std::string name = "sextant";  // letters, digits and dashes; Kubernetes allows no capitals
  int world_size = 1;
  int ranks_per_node = 1;  // divides the world, or holds all of it
  int gpus_per_rank = 0;
  int cpus_per_rank = 1;
  std::string binary = "sextant";
  std::string config;
  std::vector<std::string> overrides;  // "train.steps=50"
  std::string container;               // an image; none when empty, except that Kubernetes needs one
  ContainerRuntime container_runtime = ContainerRuntime::pyxis;
  std::string time_limit;  // as Slurm writes it: MINUTES, HH:MM:SS, DAYS-HH:MM:SS; none when empty
  std::string partition;   // Slurm only
  std::string hostfile;    // mpi only
  RemoteStart remote_start = RemoteStart::ssh;
};

// UserError for a request that no launcher, or not this one, can serve.
std::string launch_text(const LaunchRequest& request);

}  // namespace sextant
