#include "comm/launcher.h"

#include <cstdlib>
#include <initializer_list>

namespace sextant {

int launched_processes() {
  // Open MPI; MPICH and what descends from it; srun, for the step only: the batch script itself is one process.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* given = std::getenv(name))
      if (int count = std::atoi(given); count > 0) return count;
  return std::getenv("PMIX_RANK") || std::getenv("PMI_RANK") ? 0 : 1;
}

bool running_under_mpi() {
  return launched_processes() != 1;
}

}  // namespace sextant
