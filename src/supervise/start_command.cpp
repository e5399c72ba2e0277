#include "supervise/start_command.h"

#include <fmt/format.h>

namespace sextant {

std::vector<std::string> start_command(const StartRequest& r, const std::vector<std::string>& verb) {
  std::vector<std::string> words;
  if (r.starter == Starter::mpirun) words = {"mpirun", "-n", std::to_string(r.ranks)};
  if (r.starter == Starter::mpirun && !r.hostfile.empty()) words.insert(words.end(), {"--hostfile", r.hostfile});
  if (r.starter == Starter::srun)
    words = {"srun", "--mpi=pmix", "--kill-on-bad-exit=1", "--disable-status", fmt::format("--ntasks={}", r.ranks)};
  words.insert(words.end(), r.launcher_arguments.begin(), r.launcher_arguments.end());
  words.push_back(r.binary);
  words.insert(words.end(), verb.begin(), verb.end());
  return words;
}

}  // namespace sextant
