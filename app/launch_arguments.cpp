#include <CLI/CLI.hpp>

#include "app/given_options.h"
#include "app/launch.h"
#include "app/launch_options.h"

namespace sextant {

namespace {

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

}  // namespace

void add_launch_options(CLI::App& verb, LaunchArguments& a) {
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
  verb.callback([&a, &verb] {
    a.given = given_options(verb, launch_options());
    launch_verb(a);
  });
}

}  // namespace sextant
