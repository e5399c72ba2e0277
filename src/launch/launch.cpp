#include "launch/launch.h"

#include <algorithm>

#include "base/error.h"
#include "base/shell_quoted.h"
#include "launch/launchers.h"

namespace sextant {

int nodes(const LaunchRequest& r) {
  return (r.world_size + r.ranks_per_node - 1) / r.ranks_per_node;
}

int ranks_on_a_node(const LaunchRequest& r) {
  return std::min(r.world_size, r.ranks_per_node);
}

std::vector<std::string> program_words(const LaunchRequest& r) {
  std::vector<std::string> words = {r.binary, "train", r.config};
  words.insert(words.end(), r.overrides.begin(), r.overrides.end());
  return words;
}

std::vector<std::string> apptainer_words(const LaunchRequest& r) {
  if (r.container.empty() || r.container_runtime != ContainerRuntime::apptainer) return {};
  std::vector<std::string> words = {"apptainer", "exec"};
  if (r.gpus_per_rank > 0) words.push_back("--nv");
  for (const char* option : {"--bind", "--pwd"}) {
    words.push_back(option);
    words.push_back("\"$PWD\"");
  }
  words.push_back(shell_quoted(r.container));
  return words;
}

std::string launch_text(const LaunchRequest& request) {
  check_request(request);
  switch (request.launcher) {
    case Launcher::slurm:
      return slurm_text(request);
    case Launcher::mpi:
      return mpi_text(request);
    case Launcher::kubernetes:
      return kubernetes_text(request);
  }
  BUG("launcher {}", static_cast<int>(request.launcher));
}

}  // namespace sextant
