#include "app/launch_options.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace sextant {

namespace {

constexpr std::array<VerbMode, 5> kModes{{
    {"slurm", "a Slurm batch script (--slurm)"},
    {"mpirun", "a script with mpirun (--mpi)"},
    {"mpirun_container", "a script with mpirun in a container (--mpi --container)"},
    {"srun", "a script with srun (--mpi --without-ssh)"},
    {"kubernetes", "an MPIJob (--kubernetes)"},
}};

template <class... Modes>
constexpr ModeSet in(Modes... modes) {
  return (0u | ... | (1u << static_cast<unsigned>(modes)));
}

using enum LaunchMode;
constexpr ModeSet kAll = in(slurm, mpirun, mpirun_container, srun, kubernetes);

constexpr std::array<OptionUse, 30> kOptions{{
    {"config", kAll},
    {"overrides", kAll},
    {"--slurm", in(slurm)},
    {"--mpi", in(mpirun, mpirun_container, srun)},
    {"--kubernetes", in(kubernetes)},
    {"--ranks-per-node", kAll},
    {"--cpus-per-rank", kAll},
    // mpirun hands out no GPUs: a rank takes that of its place on the node. A container must be told to show them.
    {"--gpus-per-rank", in(slurm, mpirun_container, srun, kubernetes)},
    {"--time", kAll},
    {"--memory", in(slurm, kubernetes)},
    {"--partition", in(slurm)},
    {"--account", in(slurm)},
    {"--qos", in(slurm)},
    {"--constraint", in(slurm)},
    {"--exclusive", in(slurm)},
    {"--requeue", in(slurm)},
    {"--output", in(slurm)},
    {"--preflight", in(slurm, srun)},
    {"--srun-mpi", in(slurm, srun)},
    {"--hosts", in(mpirun, mpirun_container)},
    {"--without-ssh", in(srun, kubernetes)},  // Slurm never needs ssh
    {"--container", in(slurm, mpirun_container, srun, kubernetes)},
    {"--runtime", in(slurm, mpirun_container, srun)},
    {"--binary", kAll},
    {"--json", kAll},
    {"--namespace", in(kubernetes)},
    {"--volume", in(kubernetes)},
    {"--node-selector", in(kubernetes)},
    {"--service-account", in(kubernetes)},
    {"--pull-policy", in(kubernetes)},
}};

}  // namespace

const OptionTable& launch_options() {
  static const OptionTable table{kModes, kOptions};
  return table;
}

LaunchMode launch_mode(const std::vector<std::string>& given) {
  auto has = [&](std::string_view option) { return std::ranges::count(given, option) > 0; };
  int launchers = has("--slurm") + has("--mpi") + has("--kubernetes");
  if (launchers != 1)
    throw UserError({.place = "launch",
                     .got = launchers == 0 ? "no launcher is chosen" : "several launchers are chosen",
                     .expected = "one of --slurm, --mpi and --kubernetes"});
  if (has("--slurm")) return slurm;
  if (has("--kubernetes")) return kubernetes;
  if (has("--without-ssh")) return srun;
  return has("--container") ? mpirun_container : mpirun;
}

}  // namespace sextant
