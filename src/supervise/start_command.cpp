#include "supervise/start_command.h"

#include <fmt/format.h>

namespace sextant {

std::vector<std::string> start_command(const StartRequest& r, const std::vector<std::string>& verb) {
  std::vector<std::string> words;
  // Ranks believe that they write to a terminal, but it is a file: no colours.
  // When a rank is lost, Open MPI asks the others to end, waits a second before and one after it, on one host after
  // the other, and kills them. They cannot end without the lost one; so it kills them at once. Other launchers do not
  // look at these (ORTE's, PRRTE's).
  if (r.starter == Starter::mpirun)
    words = {"env",
             "NO_COLOR=1",
             "OMPI_MCA_odls_base_sigkill_timeout=0",
             "PRTE_MCA_odls_base_sigkill_timeout=0",
             "mpirun",
             "-n",
             std::to_string(r.ranks)};
  if (r.starter == Starter::mpirun && !r.hostfile.empty()) words.insert(words.end(), {"--hostfile", r.hostfile});
  if (r.starter == Starter::srun)
    words = {"srun", "--mpi=pmix", "--kill-on-bad-exit=1", "--disable-status", fmt::format("--ntasks={}", r.ranks)};
  words.insert(words.end(), r.launcher_arguments.begin(), r.launcher_arguments.end());
  words.push_back(r.binary);
  words.insert(words.end(), verb.begin(), verb.end());
  return words;
}

}  // namespace sextant
